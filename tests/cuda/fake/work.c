/* SPDX-License-Identifier: MIT */
/*
 * work: copies, fills, modules and kernels. A kernel is one of a few names whose meaning is built
 * in; gpu/kernel.h holds the same as PTX for a real device.
 */
#include "tests/cuda/fake/fake.h"

#define LAUNCH_NS 5000u

/* --- who may touch what ----------------------------------------------------------------------- */

static bool allowed(CUcontext ctx, const struct fake_range *range, bool write)
{
	unsigned bit = 1u << ctx->device;
	switch (range->type) {
	case FAKE_DEVICE:
	case FAKE_IPC: return range->device == ctx->device || (ctx->peers >> range->device & 1);
	case FAKE_ASYNC:
	case FAKE_GRAPH_MEMORY: return range->device == ctx->device || (range->readers & bit);
	case FAKE_MAPPED: return ((write ? range->writers : range->readers) & bit) != 0;
	case FAKE_ARRAY_MEMORY:
	case FAKE_RESERVED: return false;
	default: return true;
	}
}

bool fake_may_use(CUcontext ctx, CUdeviceptr at, size_t bytes, bool write)
{
	while (bytes > 0) {
		struct fake_range *range = fake_tree_find(&fake_ranges, at);
		size_t left;
		if (range == NULL || !allowed(ctx, range, write))
			return false;
		left = range->bytes - (size_t)(at - range->start);
		if (left >= bytes)
			return true;
		/* Only neighbouring mappings are one piece of memory. */
		if (range->type != FAKE_MAPPED)
			return false;
		at += left;
		bytes -= left;
	}
	return true;
}

static bool in_device_window(CUdeviceptr at)
{
	return at >= FAKE_DEVICE_BASE && at - FAKE_DEVICE_BASE < fake.va_bytes;
}

/* Did the driver give this address out, as device or as host memory? */
static bool given_out(CUdeviceptr at)
{
	CUdeviceptr host_end =
		FAKE_HOST_BASE + ((uint64_t)fake_host_va.units << fake_host_va.shift);
	return in_device_window(at) || (at >= FAKE_HOST_BASE && at < host_end);
}

char *fake_where(CUdeviceptr at, size_t *run)
{
	if (in_device_window(at))
		return fake_translate(at, run);
	*run = SIZE_MAX;
	return (char *)(uintptr_t)at;
}

/* --- effects ---------------------------------------------------------------------------------- */

static void fill(struct fake_op *op)
{
	size_t done, run, n;
	for (done = 0; done < op->bytes; done += run) {
		char *to = fake_where(op->to + done, &run);
		if (run > op->bytes - done)
			run = op->bytes - done;
		if (to == NULL)
			return;
		if (op->kind == FAKE_OP_FILL8) {
			memset(to, (int)op->value, run);
			continue;
		}
		for (n = 0; n + 4 <= run; n += 4)
			memcpy(to + n, &op->value, 4);
	}
}

static void copy(struct fake_op *op)
{
	size_t done, run_to, run_from = SIZE_MAX, run;
	for (done = 0; done < op->bytes; done += run) {
		char *to = fake_where(op->to + done, &run_to);
		const char *from = op->staged != NULL ? (const char *)op->staged + done
						      : fake_where(op->from + done, &run_from);
		run = op->bytes - done;
		run = run_to < run ? run_to : run;
		run = run_from < run ? run_from : run;
		if (to == NULL || from == NULL)
			return;
		memmove(to, from, run);
	}
}

void fake_perform(struct fake_op *op)
{
	bool ok = true;
	if (op->ctx->broken != CUDA_SUCCESS)
		return;
	if (op->kind == FAKE_OP_HOST) {
		op->fn(op->data);
		return;
	}
	if (op->access)
		ok = (!given_out(op->to) && op->kind == FAKE_OP_COPY) ||
		     fake_may_use(op->ctx, op->to, op->bytes, true);
	if (op->access && op->kind == FAKE_OP_COPY && given_out(op->from))
		ok = ok && fake_may_use(op->ctx, op->from, op->bytes, false);
	if (!ok) {
		op->ctx->broken = CUDA_ERROR_ILLEGAL_ADDRESS;
		fake_misused("work on memory that is not there", "kernel");
		return;
	}
	if (op->kind == FAKE_OP_COPY)
		copy(op);
	else
		fill(op);
}

FAKE_EXPORT int tmfake_peek(CUdeviceptr at, void *to, size_t bytes)
{
	size_t done, run;
	fake_lock();
	fake_settle();
	for (done = 0; done < bytes; done += run) {
		const char *from = fake_where(at + done, &run);
		run = run > bytes - done ? bytes - done : run;
		if (from == NULL)
			break;
		memcpy((char *)to + done, from, run);
	}
	fake_unlock();
	return done < bytes ? -1 : 0;
}

/* --- copies ----------------------------------------------------------------------------------- */

static bool pinned(CUdeviceptr at)
{
	return in_device_window(at) || fake_find(at) != NULL;
}

static uint64_t copy_ns(size_t bytes)
{
	return 2000 + bytes / 20;
}

/* Addresses that the driver gave out must be live to their end; others are the program's own. */
static bool known(CUdeviceptr at, size_t bytes)
{
	if (at + bytes < at)
		return false;
	if (!given_out(at))
		return at >= 0x10000;
	while (bytes > 0) {
		struct fake_range *range = fake_find(at);
		size_t left;
		if (range == NULL)
			return false;
		left = range->bytes - (size_t)(at - range->start);
		if (left >= bytes)
			return true;
		if (range->type != FAKE_MAPPED)
			return false;
		at += left;
		bytes -= left;
	}
	return true;
}

static CUresult submit_copy(CUstream s, CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	struct fake_op op = {
		.kind = FAKE_OP_COPY, .to = to, .from = from, .bytes = bytes, .access = true};
	bool waits = !pinned(to);
	CUresult rc;
	if (bytes == 0)
		return CUDA_SUCCESS;
	if (!known(to, bytes) || !known(from, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	/* Pageable memory is read before the call returns, and written before it does. */
	if (!pinned(from) && s->capture == CU_STREAM_CAPTURE_STATUS_NONE) {
		op.staged = malloc(bytes);
		if (op.staged == NULL)
			abort();
		memcpy(op.staged, (const void *)(uintptr_t)from, bytes);
	}
	rc = fake_submit(s, &op, copy_ns(bytes));
	if (rc != CUDA_SUCCESS)
		free(op.staged);
	if (rc == CUDA_SUCCESS && waits && s->capture == CU_STREAM_CAPTURE_STATUS_NONE)
		fake_wait_until(s->tail);
	return rc;
}

static CUresult async_copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream given)
{
	CUresult rc;
	CUstream s = fake_stream_of(given, &rc);
	return s == NULL ? rc : submit_copy(s, to, from, bytes);
}

static CUresult waited_copy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	CUresult rc;
	CUstream s = fake_stream_of(NULL, &rc);
	rc = fake_unsafe();
	if (rc == CUDA_SUCCESS)
		rc = submit_copy(s, to, from, bytes);
	if (rc == CUDA_SUCCESS)
		fake_wait_until(s->tail);
	return rc == CUDA_SUCCESS ? s->ctx->broken : rc;
}

#define AT(p) ((CUdeviceptr)(uintptr_t)(p))

CUresult fake_do_cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	return waited_copy(to, from, bytes);
}

CUresult fake_do_cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
	return waited_copy(to, AT(from), bytes);
}

CUresult fake_do_cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
	return waited_copy(AT(to), from, bytes);
}

CUresult fake_do_cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	return waited_copy(to, from, bytes);
}

CUresult fake_do_cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	return async_copy(to, from, bytes, stream);
}

CUresult fake_do_cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes,
				      CUstream stream)
{
	return async_copy(to, AT(from), bytes, stream);
}

CUresult fake_do_cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	return async_copy(AT(to), from, bytes, stream);
}

CUresult fake_do_cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes,
				      CUstream stream)
{
	return async_copy(to, from, bytes, stream);
}

/* Moves bytes between devices whether or not they can reach each other. */
CUresult fake_do_cuMemcpyPeer(CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from,
			      CUcontext from_ctx, size_t bytes)
{
	struct fake_op op = {.kind = FAKE_OP_COPY, .to = to, .from = from, .bytes = bytes};
	if (!fake_ctx_alive(to_ctx) || !fake_ctx_alive(from_ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (bytes == 0)
		return CUDA_SUCCESS;
	if (!known(to, bytes) || !known(from, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	fake_wait_until(fake_ctx_tail(to_ctx));
	fake_wait_until(fake_ctx_tail(from_ctx));
	op.ctx = fake_current();
	fake_perform(&op);
	return CUDA_SUCCESS;
}

/* --- fills ------------------------------------------------------------------------------------ */

static CUresult submit_fill(CUstream given, CUdeviceptr to, enum fake_op_kind kind, unsigned value,
			    size_t bytes)
{
	struct fake_op op = {
		.kind = kind, .to = to, .value = value, .bytes = bytes, .access = true};
	CUresult rc;
	CUstream s = fake_stream_of(given, &rc);
	if (s == NULL)
		return rc;
	if (bytes == 0)
		return CUDA_SUCCESS;
	if (!known(to, bytes) || !pinned(to) || (kind == FAKE_OP_FILL32 && to % 4 != 0))
		return CUDA_ERROR_INVALID_VALUE;
	return fake_submit(s, &op, copy_ns(bytes));
}

CUresult fake_do_cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count)
{
	return submit_fill(NULL, to, FAKE_OP_FILL8, value, count);
}

CUresult fake_do_cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count)
{
	return count > SIZE_MAX / 4 ? CUDA_ERROR_INVALID_VALUE
				    : submit_fill(NULL, to, FAKE_OP_FILL32, value, count * 4);
}

CUresult fake_do_cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
	return submit_fill(stream, to, FAKE_OP_FILL8, value, count);
}

CUresult fake_do_cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream)
{
	return count > SIZE_MAX / 4 ? CUDA_ERROR_INVALID_VALUE
				    : submit_fill(stream, to, FAKE_OP_FILL32, value, count * 4);
}

/* --- modules and kernels ---------------------------------------------------------------------- */

enum builtin { TM_FILL, TM_COPY, TM_SPIN };

static const char *const builtin_names[] = {"tm_fill", "tm_copy", "tm_spin"};

struct CUmod_st {
	enum fake_magic magic;
	unsigned has; /* a bit per built-in name in the image */
	struct CUfunc_st {
		enum fake_magic magic;
		enum builtin what;
	} function[3];
};

CUresult fake_do_cuModuleLoadData(CUmodule *module, const void *image)
{
	unsigned i, has = 0;
	if (module == NULL || image == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < 3; i++)
		has |= strstr(image, builtin_names[i]) != NULL ? 1u << i : 0;
	if (has == 0)
		return CUDA_ERROR_INVALID_IMAGE;
	*module = fake_object(FAKE_MODULE, sizeof(**module));
	(*module)->has = has;
	for (i = 0; i < 3; i++) {
		(*module)->function[i].magic = FAKE_FUNCTION;
		(*module)->function[i].what = (enum builtin)i;
	}
	return CUDA_SUCCESS;
}

CUresult fake_do_cuModuleUnload(CUmodule module)
{
	if (!fake_is(module, FAKE_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	fake_object_free(module, sizeof(*module));
	return CUDA_SUCCESS;
}

CUresult fake_do_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	unsigned i;
	if (function == NULL || name == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(module, FAKE_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	for (i = 0; i < 3; i++)
		if ((module->has >> i & 1) && strcmp(name, builtin_names[i]) == 0) {
			*function = &module->function[i];
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_NOT_FOUND;
}

/*
 * tm_fill(u64 to, u64 words, u32 value, u64 ns), tm_copy(u64 to, u64 from, u64 words, u64 ns),
 * tm_spin(u64 ns).
 */
CUresult fake_do_cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
				unsigned by, unsigned bz, unsigned shared, CUstream given,
				void **params, void **extra)
{
	struct fake_op op = {.kind = FAKE_OP_FILL32, .access = true};
	uint64_t u[4] = {0, 0, 0, 0};
	unsigned i, n;
	CUresult rc;
	CUstream s = fake_stream_of(given, &rc);
	(void)shared;
	(void)extra;
	if (s == NULL)
		return rc;
	if (f == NULL || f->magic != FAKE_FUNCTION)
		return CUDA_ERROR_INVALID_HANDLE;
	n = f->what == TM_SPIN ? 1 : 4;
	if (params == NULL || gx * gy * gz == 0 || bx * by * bz == 0)
		return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < n; i++)
		memcpy(&u[i], params[i], f->what == TM_FILL && i == 2 ? 4 : 8);
	if (f->what == TM_SPIN)
		return fake_submit(s, &op, u[0]);
	op.to = u[0];
	op.bytes = (f->what == TM_FILL ? u[1] : u[2]) * 4;
	op.value = (uint32_t)u[2];
	if (f->what == TM_COPY) {
		op.kind = FAKE_OP_COPY;
		op.from = u[1];
	}
	return fake_submit(s, &op, LAUNCH_NS + u[3]);
}

FAKE_EXPORT CUresult tmfake_fill(CUstream given, CUdeviceptr at, uint32_t value, size_t count,
				 uint64_t ns)
{
	struct fake_op op = {.kind = FAKE_OP_FILL32,
			     .to = at,
			     .value = value,
			     .bytes = count * 4,
			     .access = true};
	CUresult rc = CUDA_ERROR_INVALID_CONTEXT;
	CUstream s = NULL;
	fake_lock();
	fake_settle();
	if (fake_current() != NULL)
		s = fake_stream_of(given, &rc);
	if (s != NULL)
		rc = fake_submit(s, &op, ns);
	fake_unlock();
	return rc;
}

CUresult fake_do_cuLaunchHostFunc(CUstream given, CUhostFn fn, void *data)
{
	struct fake_op op = {.kind = FAKE_OP_HOST, .fn = fn, .data = data};
	CUresult rc;
	CUstream s = fake_stream_of(given, &rc);
	if (s == NULL)
		return rc;
	return fn == NULL ? CUDA_ERROR_INVALID_VALUE : fake_submit(s, &op, 1000);
}
