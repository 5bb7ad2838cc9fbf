/* SPDX-License-Identifier: MIT */
#include "cuda_hooks/capture.h"

#include "cuda_hooks/context.h"
#include "cuda_hooks/hooks.h"

#define ROOM 64u

/* Handle of a thread's own default stream. */
#define PER_THREAD ((tm_cu_stream)2)

static struct tm_capture under_way[ROOM]; /* [lock] */
static uint32_t used;                     /* [lock] */
static uint32_t unnamed;                  /* [lock] captures that found no room in the table */
_Atomic uint32_t tm_capture_count;        /* used + unnamed */

struct tm_capture tm_capture_of(tm_cu_stream stream, enum tm_capture_form form)
{
	struct tm_capture c = {stream, 0, tm_context_current()};
	if (stream == NULL && form == TM_CAPTURE_PTDS)
		c.stream = PER_THREAD;
	if (c.stream == PER_THREAD)
		c.thread = (uintptr_t)&tm_hooks_thread;
	return c;
}

static void publish(void)
{
	atomic_store_explicit(&tm_capture_count, used + unnamed, memory_order_release);
}

void tm_capture_begun(const struct tm_capture *capture)
{
	tm_hooks_lock();
	if (used < ROOM)
		under_way[used++] = *capture;
	else
		unnamed++;
	publish();
	tm_hooks_unlock();
}

static bool is(const struct tm_capture *a, const struct tm_capture *b)
{
	return a->stream == b->stream && a->thread == b->thread;
}

void tm_capture_over(const struct tm_capture *capture)
{
	uint32_t i;
	tm_hooks_lock();
	for (i = 0; i < used && !is(&under_way[i], capture); i++)
		continue;
	if (i < used)
		under_way[i] = under_way[--used];
	else if (unnamed != 0)
		unnamed--;
	publish();
	tm_hooks_unlock();
}

/* [lock] Drops all captures of a stream, or else of a context. */
static void drop(tm_cu_stream stream, tm_cu_context context)
{
	uint32_t i = 0;
	while (i < used) {
		bool gone = stream != NULL ? under_way[i].stream == stream
					   : under_way[i].context == context;
		if (gone)
			under_way[i] = under_way[--used];
		else
			i++;
	}
	publish();
}

void tm_capture_stream_gone(tm_cu_stream stream)
{
	if (stream == NULL || !tm_capture_any())
		return;
	tm_hooks_lock();
	drop(stream, NULL);
	tm_hooks_unlock();
}

void tm_capture_context_gone(tm_cu_context context)
{
	if (context != NULL)
		drop(NULL, context);
}
