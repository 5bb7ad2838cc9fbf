/* SPDX-License-Identifier: MIT */
/* context: start, devices, contexts, who is current, peers. */
#include "tests/cuda/fake/fake.h"

static CUcontext primaries[FAKE_DEVICES];
static uint64_t next_ctx_id;

/* --- start, versions, names ------------------------------------------------------------------- */

CUresult fake_do_cuInit(unsigned flags)
{
	if (flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (fake.exited)
		return CUDA_ERROR_DEINITIALIZED;
	if (fake.forked)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!fake.initialized) {
		fake_init_process();
		if (getenv("TMFAKE_SELF") != NULL) {
			fake_unlock();
			fake_look_at_self();
			fake_lock();
		}
	}
	return fake.devices > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CUresult fake_do_cuDriverGetVersion(int *version)
{
	if (version == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*version = fake.version;
	return CUDA_SUCCESS;
}

CUresult fake_do_cuGetErrorName(CUresult error, const char **text)
{
	static const struct {
		CUresult code;
		const char *name;
	} names[] = {
		{0, "CUDA_SUCCESS"},
		{1, "CUDA_ERROR_INVALID_VALUE"},
		{2, "CUDA_ERROR_OUT_OF_MEMORY"},
		{3, "CUDA_ERROR_NOT_INITIALIZED"},
		{4, "CUDA_ERROR_DEINITIALIZED"},
		{201, "CUDA_ERROR_INVALID_CONTEXT"},
		{400, "CUDA_ERROR_INVALID_HANDLE"},
		{500, "CUDA_ERROR_NOT_FOUND"},
		{600, "CUDA_ERROR_NOT_READY"},
		{700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
		{900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
	};
	size_t i;
	if (text == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*text = NULL;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].code == error)
			*text = names[i].name;
	return *text == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult fake_do_cuGetErrorString(CUresult error, const char **text)
{
	return fake_do_cuGetErrorName(error, text);
}

/* --- devices ---------------------------------------------------------------------------------- */

static bool is_device(CUdevice device)
{
	return device >= 0 && device < fake.devices;
}

CUresult fake_do_cuDeviceGetCount(int *count)
{
	if (count == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*count = fake.devices;
	return CUDA_SUCCESS;
}

CUresult fake_do_cuDeviceGet(CUdevice *device, int ordinal)
{
	if (device == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_device(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	*device = ordinal;
	return CUDA_SUCCESS;
}

CUresult fake_do_cuDeviceGetName(char *name, int bytes, CUdevice device)
{
	if (name == NULL || bytes <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_device(device))
		return CUDA_ERROR_INVALID_DEVICE;
	snprintf(name, (size_t)bytes, "fake device %d", device);
	return CUDA_SUCCESS;
}

CUresult fake_do_cuDeviceGetUuid_v2(CUuuid *id, CUdevice device)
{
	if (id == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_device(device))
		return CUDA_ERROR_INVALID_DEVICE;
	memset(id, 0xfa, sizeof(*id));
	id->bytes[15] = (unsigned char)device;
	return CUDA_SUCCESS;
}

CUresult fake_do_cuDeviceGetUuid(CUuuid *id, CUdevice device)
{
	return fake_do_cuDeviceGetUuid_v2(id, device);
}

CUresult fake_do_cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
	int is;
	if (value == NULL || attribute < 1)
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_device(device))
		return CUDA_ERROR_INVALID_DEVICE;
	switch (attribute) {
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: is = 8; break;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: is = 9; break;
	case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
	case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
	case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
	case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED: is = 1; break;
	case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: is = fake.version >= 11020; break;
	default: is = 0;
	}
	*value = fake_attribute_override(attribute, is);
	return CUDA_SUCCESS;
}

CUresult fake_do_cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	if (bytes == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_device(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*bytes = fake.capacity;
	return CUDA_SUCCESS;
}

CUresult fake_do_cuDeviceCanAccessPeer(int *can, CUdevice a, CUdevice b)
{
	if (can == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_device(a) || !is_device(b))
		return CUDA_ERROR_INVALID_DEVICE;
	*can = a != b && fake.peers;
	return CUDA_SUCCESS;
}

/* --- who is current --------------------------------------------------------------------------- */

bool fake_ctx_alive(CUcontext ctx)
{
	return fake_is(ctx, FAKE_CTX) && (!ctx->primary || ctx->refs > 0);
}

/* A device's primary context keeps its handle through all its lives. */
static CUcontext primary(CUdevice device)
{
	if (primaries[device] == NULL) {
		primaries[device] = fake_object(FAKE_CTX, sizeof(struct CUctx_st));
		primaries[device]->primary = true;
	}
	return primaries[device];
}

/* A question makes no object: handles must not depend on who asks. */
static bool is_held(CUdevice device)
{
	return primaries[device] != NULL && primaries[device]->refs > 0;
}

CUcontext fake_current(void)
{
	return fake_self.depth == 0 ? NULL : fake_self.stack[fake_self.depth - 1];
}

/* A primary context that came back under its old handle is the old one; another's handle is not. */
bool fake_current_dead(void)
{
	CUcontext ctx = fake_current();
	if (!fake_ctx_alive(ctx))
		return true;
	return !ctx->primary && fake_self.stack_id[fake_self.depth - 1] != ctx->id;
}

static void set_top(CUcontext ctx)
{
	fake_self.stack[fake_self.depth - 1] = ctx;
	fake_self.stack_id[fake_self.depth - 1] = ctx == NULL ? 0 : ctx->id;
}

CUresult fake_do_cuCtxPushCurrent_v2(CUcontext ctx)
{
	if (!fake_ctx_alive(ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (fake_self.depth == FAKE_STACK)
		return CUDA_ERROR_INVALID_VALUE;
	fake_self.depth++;
	set_top(ctx);
	return CUDA_SUCCESS;
}

CUresult fake_do_cuCtxPopCurrent_v2(CUcontext *ctx)
{
	if (fake_self.depth == 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (ctx != NULL)
		*ctx = fake_current();
	fake_self.depth--;
	return CUDA_SUCCESS;
}

CUresult fake_do_cuCtxSetCurrent(CUcontext ctx)
{
	if (ctx == NULL) {
		fake_self.depth -= fake_self.depth > 0;
		return CUDA_SUCCESS;
	}
	if (!fake_ctx_alive(ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	fake_self.depth += fake_self.depth == 0;
	set_top(ctx);
	return CUDA_SUCCESS;
}

CUresult fake_do_cuCtxGetCurrent(CUcontext *ctx)
{
	if (ctx == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*ctx = fake_current();
	return CUDA_SUCCESS;
}

CUresult fake_do_cuCtxGetDevice(CUdevice *device)
{
	if (device == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*device = fake_current()->device;
	return CUDA_SUCCESS;
}

CUresult fake_do_cuCtxGetFlags(unsigned *flags)
{
	if (flags == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = fake_current()->flags;
	return CUDA_SUCCESS;
}

CUresult fake_do_cuCtxGetId(CUcontext ctx, unsigned long long *id)
{
	if (ctx == NULL)
		ctx = fake_current();
	if (id == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_ctx_alive(ctx))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	*id = ctx->id;
	return CUDA_SUCCESS;
}

CUresult fake_do_cuCtxGetApiVersion(CUcontext ctx, unsigned *version)
{
	if (ctx == NULL)
		ctx = fake_current();
	if (version == NULL || !fake_ctx_alive(ctx))
		return version == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CONTEXT;
	*version = 3020;
	return CUDA_SUCCESS;
}

CUresult fake_do_cuCtxSynchronize(void)
{
	CUcontext ctx = fake_current();
	CUresult rc = fake_unsafe_ctx(ctx);
	if (rc != CUDA_SUCCESS)
		return rc;
	fake_wait_until(fake_ctx_tail(ctx));
	fake_pools_trim();
	return ctx->broken;
}

/* --- birth and death -------------------------------------------------------------------------- */

static void start(CUcontext ctx, CUdevice device, unsigned flags)
{
	ctx->magic = FAKE_CTX;
	ctx->device = device;
	ctx->flags = flags;
	ctx->id = ++next_ctx_id;
	ctx->broken = CUDA_SUCCESS;
	ctx->peers = 0;
	ctx->streams = NULL;
	memset(&ctx->legacy, 0, sizeof(ctx->legacy));
	ctx->legacy.magic = FAKE_STREAM;
	ctx->legacy.ctx = ctx;
	ctx->next = fake.contexts;
	fake.contexts = ctx;
}

/* What cuMemAlloc and its relatives gave goes with the context; stream-ordered memory stays. */
static void release_memory(CUcontext ctx)
{
	struct fake_range *range, *next;
	for (range = fake_tree_from(&fake_ranges, 0); range != NULL; range = next) {
		next = fake_tree_from(&fake_ranges, range->start + 1);
		if (range->ctx != ctx)
			continue;
		if (range->type == FAKE_ASYNC || range->type == FAKE_GRAPH_MEMORY) {
			range->ctx = NULL;
			continue;
		}
		if (range->type == FAKE_IPC)
			fake_unmap_range(range);
		else if (range->type == FAKE_DEVICE || range->type == FAKE_ARRAY_MEMORY)
			fake_memory_free(range);
		else
			fake_host_release(range);
	}
}

static void stop(CUcontext ctx)
{
	CUcontext *at;
	CUstream stream;
	fake_wait_until(fake_ctx_tail(ctx));
	fake_drop_ctx_ops(ctx);
	release_memory(ctx);
	while ((stream = ctx->streams) != NULL) {
		fake_capture_abandon(stream);
		ctx->streams = stream->next;
		fake_object_free(stream, sizeof(*stream));
	}
	for (at = &fake.contexts; *at != NULL && *at != ctx; at = &(*at)->next)
		continue;
	if (*at != NULL)
		*at = ctx->next;
}

static CUresult create(CUcontext *ret_ctx, unsigned flags, CUdevice device)
{
	CUcontext ctx;
	if (ret_ctx == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_device(device))
		return CUDA_ERROR_INVALID_DEVICE;
	ctx = fake_object(FAKE_CTX, sizeof(*ctx));
	start(ctx, device, flags);
	*ret_ctx = ctx;
	return fake_do_cuCtxPushCurrent_v2(ctx);
}

CUresult fake_do_cuCtxCreate_v2(CUcontext *ctx, unsigned flags, CUdevice device)
{
	return create(ctx, flags, device);
}

CUresult fake_do_cuCtxCreate_v3(CUcontext *ctx, void *affinity, int count, unsigned flags,
				CUdevice device)
{
	return affinity == NULL && count != 0 ? CUDA_ERROR_INVALID_VALUE
					      : create(ctx, flags, device);
}

CUresult fake_do_cuCtxCreate_v4(CUcontext *ctx, void *params, unsigned flags, CUdevice device)
{
	(void)params;
	return create(ctx, flags, device);
}

CUresult fake_do_cuCtxDestroy_v2(CUcontext ctx)
{
	if (!fake_ctx_alive(ctx) || ctx->primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (fake_current() == ctx)
		fake_self.depth--;
	stop(ctx);
	fake_object_free(ctx, sizeof(*ctx));
	return CUDA_SUCCESS;
}

CUresult fake_do_cuCtxDestroy(CUcontext ctx)
{
	return fake_do_cuCtxDestroy_v2(ctx);
}

CUresult fake_do_cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice device)
{
	if (ctx == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_device(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (primary(device)->refs++ == 0) {
		start(primary(device), device, primary(device)->flags);
	}
	*ctx = primary(device);
	return CUDA_SUCCESS;
}

CUresult fake_do_cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	if (!is_device(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!is_held(device))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (primary(device)->refs == 1)
		stop(primary(device));
	primary(device)->refs--;
	return CUDA_SUCCESS;
}

CUresult fake_do_cuDevicePrimaryCtxRelease(CUdevice device)
{
	return fake_do_cuDevicePrimaryCtxRelease_v2(device);
}

/* Everything in it is gone; who retained it still holds it. */
CUresult fake_do_cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	CUcontext ctx;
	if (!is_device(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!is_held(device))
		return CUDA_SUCCESS;
	ctx = primary(device);
	stop(ctx);
	start(ctx, device, ctx->flags);
	return CUDA_SUCCESS;
}

CUresult fake_do_cuDevicePrimaryCtxReset(CUdevice device)
{
	return fake_do_cuDevicePrimaryCtxReset_v2(device);
}

CUresult fake_do_cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
	if (flags == NULL || active == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_device(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*flags = primaries[device] == NULL ? 0 : primaries[device]->flags;
	*active = is_held(device);
	return CUDA_SUCCESS;
}

CUresult fake_do_cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags)
{
	if (!is_device(device))
		return CUDA_ERROR_INVALID_DEVICE;
	primary(device)->flags = flags;
	return CUDA_SUCCESS;
}

CUresult fake_do_cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags)
{
	return fake_do_cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

/* --- peers ------------------------------------------------------------------------------------ */

CUresult fake_do_cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
	CUcontext ctx = fake_current();
	if (flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_ctx_alive(peer) || peer == ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!fake.peers || peer->device == ctx->device)
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	if (ctx->peers >> peer->device & 1)
		return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	ctx->peers |= 1u << peer->device;
	return CUDA_SUCCESS;
}

CUresult fake_do_cuCtxDisablePeerAccess(CUcontext peer)
{
	CUcontext ctx = fake_current();
	if (!fake_ctx_alive(peer))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!(ctx->peers >> peer->device & 1))
		return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	ctx->peers &= ~(1u << peer->device);
	return CUDA_SUCCESS;
}
