/* SPDX-License-Identifier: MIT */
/*
 * timeline: streams, events and work on the virtual clock. When work is submitted it is known when
 * it will end; its effect comes then, in order of the ends. So an event is a time, and waiting is
 * moving the clock.
 */
#include "tests/cuda/fake/fake.h"

static struct fake_op **heap;
static size_t heap_count, heap_room;
static uint64_t next_order;

/* --- work that has not ended: a heap by end --------------------------------------------------- */

static bool before(const struct fake_op *a, const struct fake_op *b)
{
	return a->end != b->end ? a->end < b->end : a->order < b->order;
}

static void swap(size_t a, size_t b)
{
	struct fake_op *op = heap[a];
	heap[a] = heap[b];
	heap[b] = op;
}

static void sink(size_t at)
{
	for (;;) {
		size_t child = 2 * at + 1;
		if (child + 1 < heap_count && before(heap[child + 1], heap[child]))
			child++;
		if (child >= heap_count || !before(heap[child], heap[at]))
			return;
		swap(at, child);
		at = child;
	}
}

static void push(const struct fake_op *given)
{
	struct fake_op *op = malloc(sizeof(*op));
	size_t at = heap_count;
	if (heap_count == heap_room) {
		heap_room = heap_room == 0 ? 256 : heap_room * 2;
		heap = realloc(heap, heap_room * sizeof(struct fake_op *));
	}
	if (op == NULL || heap == NULL)
		abort();
	*op = *given;
	op->order = next_order++;
	heap[heap_count++] = op;
	while (at > 0 && before(heap[at], heap[(at - 1) / 2])) {
		swap(at, (at - 1) / 2);
		at = (at - 1) / 2;
	}
}

static struct fake_op *pop(void)
{
	struct fake_op *op = heap[0];
	heap[0] = heap[--heap_count];
	sink(0);
	return op;
}

static void finish(struct fake_op *op)
{
	free(op->staged);
	free(op);
}

/* Taken off before it is performed: whoever waits meanwhile must not perform it again. */
void fake_settle(void)
{
	while (heap_count > 0 && heap[0]->end <= fake.now) {
		struct fake_op *op = pop();
		fake_perform(op);
		finish(op);
	}
}

void fake_wait_until(uint64_t time)
{
	if (time > fake.now)
		fake.now = time;
	fake_settle();
}

size_t fake_pending(void)
{
	return heap_count;
}

void fake_drop_ctx_ops(CUcontext ctx)
{
	size_t from, to = 0;
	for (from = 0; from < heap_count; from++)
		if (heap[from]->ctx == ctx)
			finish(heap[from]);
		else
			heap[to++] = heap[from];
	heap_count = to;
	for (from = heap_count / 2; from-- > 0;)
		sink(from);
}

/* --- streams ---------------------------------------------------------------------------------- */

uint64_t fake_ctx_tail(CUcontext ctx)
{
	uint64_t tail = ctx->legacy.tail;
	CUstream s;
	for (s = ctx->streams; s != NULL; s = s->next)
		if (s->tail > tail)
			tail = s->tail;
	return tail;
}

static CUstream new_stream(CUcontext ctx, unsigned flags)
{
	CUstream s = fake_object(FAKE_STREAM, sizeof(*s));
	s->ctx = ctx;
	s->flags = flags;
	s->next = ctx->streams;
	ctx->streams = s;
	return s;
}

static CUstream own_stream_if_any(CUcontext ctx)
{
	CUstream s;
	for (s = ctx->streams; s != NULL; s = s->next)
		if (s->owner == fake_self.id && s->flags == 0x100)
			return s;
	return NULL;
}

static CUstream own_stream(CUcontext ctx)
{
	CUstream s = own_stream_if_any(ctx);
	if (s == NULL) {
		s = new_stream(ctx, 0x100);
		s->owner = fake_self.id;
	}
	return s;
}

static bool is_own(CUstream given)
{
	return given == CU_STREAM_PER_THREAD || (given == NULL && fake_self.per_thread);
}

/* A question makes no stream: handles must not depend on who asks. */
bool fake_stream_is_unused(CUstream given)
{
	return is_own(given) && own_stream_if_any(fake_current()) == NULL;
}

/* The stream behind a handle, NULL and the two special ones included. */
CUstream fake_stream_of(CUstream given, CUresult *rc)
{
	CUcontext ctx = fake_current();
	*rc = CUDA_SUCCESS;
	if (is_own(given))
		return own_stream(ctx);
	if (given == NULL || given == CU_STREAM_LEGACY)
		return &ctx->legacy;
	if (!fake_is(given, FAKE_STREAM)) {
		*rc = CUDA_ERROR_INVALID_HANDLE;
		return NULL;
	}
	return given;
}

static bool blocking(CUstream s)
{
	return !(s->flags & CU_STREAM_NON_BLOCKING);
}

/* Work on the NULL stream waits for the blocking streams, and they for it. */
uint64_t fake_stream_tail(CUstream s)
{
	uint64_t tail = s->tail;
	CUstream other;
	if (s != &s->ctx->legacy)
		return blocking(s) && s->ctx->legacy.tail > tail ? s->ctx->legacy.tail : tail;
	for (other = s->ctx->streams; other != NULL; other = other->next)
		if (blocking(other) && other->tail > tail)
			tail = other->tail;
	return tail;
}

CUresult fake_submit(CUstream s, struct fake_op *op, uint64_t ns)
{
	uint64_t start = fake_stream_tail(s);
	CUstream other;
	if (s->capture != CU_STREAM_CAPTURE_STATUS_NONE)
		return fake_capture_op(s, op, ns);
	if (s == &s->ctx->legacy)
		for (other = s->ctx->streams; other != NULL; other = other->next)
			if (blocking(other) && other->capture != CU_STREAM_CAPTURE_STATUS_NONE) {
				other->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
				return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
			}
	if (start < fake.now)
		start = fake.now;
	if (fake.seed != 0)
		ns = ns / 2 + fake_random(2 * ns + 1);
	op->ctx = s->ctx;
	op->end = s->tail = start + ns;
	push(op);
	return CUDA_SUCCESS;
}

CUresult fake_do_cuStreamCreate(CUstream *stream, unsigned flags)
{
	if (stream == NULL || flags > CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	*stream = new_stream(fake_current(), flags);
	return CUDA_SUCCESS;
}

CUresult fake_do_cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
	(void)priority;
	return fake_do_cuStreamCreate(stream, flags);
}

/* Returns at once; what was begun on it still ends. */
CUresult fake_do_cuStreamDestroy_v2(CUstream s)
{
	CUstream *at;
	if (!fake_is(s, FAKE_STREAM))
		return CUDA_ERROR_INVALID_HANDLE;
	fake_capture_abandon(s);
	if (s->tail > s->ctx->legacy.tail && s->tail > fake.now)
		s->ctx->legacy.tail = s->tail;
	for (at = &s->ctx->streams; *at != NULL && *at != s; at = &(*at)->next)
		continue;
	if (*at != NULL)
		*at = s->next;
	fake_object_free(s, sizeof(*s));
	return CUDA_SUCCESS;
}

CUresult fake_do_cuStreamSynchronize(CUstream given)
{
	CUresult rc;
	CUstream s = fake_stream_of(given, &rc);
	if (s == NULL)
		return rc;
	if (s->capture != CU_STREAM_CAPTURE_STATUS_NONE) {
		s->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	rc = fake_unsafe();
	if (rc != CUDA_SUCCESS)
		return rc;
	fake_wait_until(fake_stream_tail(s));
	fake_pools_trim();
	return s->ctx->broken;
}

CUresult fake_do_cuStreamQuery(CUstream given)
{
	CUresult rc;
	CUstream s = fake_stream_of(given, &rc);
	if (s == NULL)
		return rc;
	rc = fake_unsafe();
	if (rc != CUDA_SUCCESS)
		return rc;
	return fake_stream_tail(s) > fake.now ? CUDA_ERROR_NOT_READY : s->ctx->broken;
}

CUresult fake_do_cuStreamGetCtx(CUstream given, CUcontext *ctx)
{
	CUresult rc;
	CUstream s = fake_stream_of(given, &rc);
	if (ctx == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (s != NULL)
		*ctx = s->ctx;
	return rc;
}

/* --- events ----------------------------------------------------------------------------------- */

CUresult fake_do_cuEventCreate(CUevent *event, unsigned flags)
{
	if (event == NULL || flags > 7)
		return CUDA_ERROR_INVALID_VALUE;
	*event = fake_object(FAKE_EVENT, sizeof(**event));
	(*event)->ctx = fake_current();
	(*event)->flags = flags;
	return CUDA_SUCCESS;
}

CUresult fake_do_cuEventDestroy_v2(CUevent event)
{
	if (!fake_is(event, FAKE_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	fake_object_free(event, sizeof(*event));
	return CUDA_SUCCESS;
}

CUresult fake_do_cuEventRecord(CUevent event, CUstream given)
{
	CUresult rc;
	CUstream s = fake_stream_of(given, &rc);
	if (s == NULL || !fake_is(event, FAKE_EVENT) || event->ctx != s->ctx)
		return CUDA_ERROR_INVALID_HANDLE;
	event->captured = s->capture != CU_STREAM_CAPTURE_STATUS_NONE ? s->graph : NULL;
	event->end = fake_stream_tail(s);
	return CUDA_SUCCESS;
}

CUresult fake_do_cuCtxRecordEvent(CUcontext ctx, CUevent event)
{
	CUresult rc;
	if (ctx == NULL)
		ctx = fake_current();
	if (!fake_ctx_alive(ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!fake_is(event, FAKE_EVENT) || event->ctx != ctx)
		return CUDA_ERROR_INVALID_HANDLE;
	rc = fake_unsafe_ctx(ctx);
	if (rc == CUDA_SUCCESS)
		rc = ctx->broken;
	if (rc != CUDA_SUCCESS)
		return rc;
	event->captured = NULL;
	event->end = fake_ctx_tail(ctx);
	return CUDA_SUCCESS;
}

CUresult fake_do_cuCtxWaitEvent(CUcontext ctx, CUevent event)
{
	CUresult rc;
	CUstream s;
	if (ctx == NULL)
		ctx = fake_current();
	if (!fake_ctx_alive(ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!fake_is(event, FAKE_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	rc = fake_unsafe_ctx(ctx);
	if (rc != CUDA_SUCCESS)
		return rc;
	for (s = ctx->streams; s != NULL; s = s->next)
		if (s->tail < event->end)
			s->tail = event->end;
	if (ctx->legacy.tail < event->end)
		ctx->legacy.tail = event->end;
	return CUDA_SUCCESS;
}

static CUresult look_at(CUevent event)
{
	if (!fake_is(event, FAKE_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	if (event->captured != NULL)
		return CUDA_ERROR_CAPTURED_EVENT;
	if (!fake_ctx_alive(event->ctx))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return event->ctx->broken != CUDA_SUCCESS ? event->ctx->broken : fake_unsafe();
}

CUresult fake_do_cuEventQuery(CUevent event)
{
	CUresult rc = look_at(event);
	if (rc != CUDA_SUCCESS)
		return rc;
	return event->end > fake.now ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult fake_do_cuEventSynchronize(CUevent event)
{
	CUresult rc = look_at(event);
	if (rc != CUDA_SUCCESS)
		return rc;
	fake_wait_until(event->end);
	return CUDA_SUCCESS;
}

CUresult fake_do_cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
	if (ms == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(start, FAKE_EVENT) || !fake_is(end, FAKE_EVENT) ||
	    ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING))
		return CUDA_ERROR_INVALID_HANDLE;
	if (end->end > fake.now)
		return CUDA_ERROR_NOT_READY;
	*ms = (float)(end->end - start->end) / 1e6f;
	return CUDA_SUCCESS;
}

CUresult fake_do_cuStreamWaitEvent(CUstream given, CUevent event, unsigned flags)
{
	CUresult rc;
	CUstream s = fake_stream_of(given, &rc);
	(void)flags;
	if (s == NULL || !fake_is(event, FAKE_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	if (event->captured != NULL && !fake_recording(event->captured))
		return CUDA_ERROR_CAPTURED_EVENT;
	if (event->captured != NULL && s->capture == CU_STREAM_CAPTURE_STATUS_NONE) {
		/* A stream joins the capture by waiting for one of its events. */
		s->capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
		s->graph = event->captured;
		return CUDA_SUCCESS;
	}
	if (s->tail < event->end)
		s->tail = event->end;
	return CUDA_SUCCESS;
}
