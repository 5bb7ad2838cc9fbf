/* SPDX-License-Identifier: MIT */
/* host: pinned, registered and managed memory, arrays, and what a pointer is. */
#include "tests/cuda/fake/fake.h"

#include <sys/mman.h>

#define PAGE ((size_t)4096)

/* --- pinned and managed ----------------------------------------------------------------------- */

static void add_range(enum fake_type type, CUdeviceptr start, size_t bytes, unsigned flags)
{
	struct fake_range *range = fake_range_new(type, start, bytes);

	range->ctx = fake_current();
	range->device = range->ctx->device;
	range->flags = flags;
	fake_tree_add(&fake_ranges, range);
}

static CUresult new_host(CUdeviceptr *pointer, size_t bytes, enum fake_type type, unsigned flags)
{
	size_t whole = (bytes + PAGE - 1) & ~(PAGE - 1);
	CUdeviceptr start;
	CUresult rc = fake_unsafe();
	if (rc != CUDA_SUCCESS)
		return rc;
	start = whole < bytes || whole > (size_t)32 << 30 ? 0
							  : fake_va_take(&fake_host_va, whole, 0);
	if (start == 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (mmap((void *)(uintptr_t)start, whole, PROT_READ | PROT_WRITE,
		 /* Shared, as mappings of a driver's device file are. */
		 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
		 0) == MAP_FAILED) {
		fake_va_give(&fake_host_va, start, whole);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	add_range(type, start, bytes, flags);
	*pointer = start;
	return CUDA_SUCCESS;
}

void fake_host_release(struct fake_range *range)
{
	size_t whole = (range->bytes + PAGE - 1) & ~(PAGE - 1);
	fake_tree_remove(&fake_ranges, range);
	if (range->type != FAKE_REGISTERED) {
		munmap((void *)(uintptr_t)range->start, whole);
		fake_va_give(&fake_host_va, range->start, whole);
	}
	free(range);
}

CUresult fake_do_cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned flags)
{
	if (pointer == NULL || bytes == 0 || flags < 1 || flags > 2)
		return CUDA_ERROR_INVALID_VALUE;
	return new_host(pointer, bytes, FAKE_MANAGED, flags);
}

CUresult fake_do_cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
	CUdeviceptr start;
	CUresult rc;
	if (pointer == NULL || bytes == 0 || flags > 7)
		return CUDA_ERROR_INVALID_VALUE;
	rc = new_host(&start, bytes, FAKE_HOST, flags);
	if (rc == CUDA_SUCCESS)
		*pointer = (void *)(uintptr_t)start;
	return rc;
}

CUresult fake_do_cuMemAllocHost_v2(void **pointer, size_t bytes)
{
	return fake_do_cuMemHostAlloc(pointer, bytes, 0);
}

CUresult fake_do_cuMemFreeHost(void *pointer)
{
	struct fake_range *range = fake_find((uintptr_t)pointer);
	CUcontext ctx;
	CUresult rc;
	if (range == NULL || range->type != FAKE_HOST || range->start != (uintptr_t)pointer)
		return CUDA_ERROR_INVALID_VALUE;
	rc = fake_unsafe();
	if (rc != CUDA_SUCCESS)
		return rc;
	/* Every device reaches it. */
	for (ctx = fake.contexts; ctx != NULL; ctx = ctx->next)
		fake_wait_until(fake_ctx_tail(ctx));
	fake_host_release(range);
	return CUDA_SUCCESS;
}

CUresult fake_do_cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *pointer, unsigned flags)
{
	struct fake_range *range = fake_find((uintptr_t)pointer);
	if (device == NULL || flags != 0 || range == NULL ||
	    (range->type != FAKE_HOST && range->type != FAKE_REGISTERED))
		return CUDA_ERROR_INVALID_VALUE;
	*device = (uintptr_t)pointer;
	return CUDA_SUCCESS;
}

CUresult fake_do_cuMemHostGetFlags(unsigned *flags, void *pointer)
{
	struct fake_range *range = fake_find((uintptr_t)pointer);
	if (flags == NULL || range == NULL || range->type != FAKE_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = range->flags;
	return CUDA_SUCCESS;
}

CUresult fake_do_cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned flags)
{
	CUdeviceptr start = (uintptr_t)pointer;
	struct fake_range *next;
	CUresult rc;
	if (pointer == NULL || bytes == 0 || flags > 15 || start + bytes < start)
		return CUDA_ERROR_INVALID_VALUE;
	next = fake_tree_from(&fake_ranges, start);
	if (fake_tree_find(&fake_ranges, start) != NULL ||
	    (next != NULL && next->start < start + bytes))
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	rc = fake_unsafe();
	if (rc != CUDA_SUCCESS)
		return rc;
	add_range(FAKE_REGISTERED, start, bytes, flags);
	return CUDA_SUCCESS;
}

CUresult fake_do_cuMemHostRegister(void *pointer, size_t bytes, unsigned flags)
{
	return fake_do_cuMemHostRegister_v2(pointer, bytes, flags);
}

CUresult fake_do_cuMemHostUnregister(void *pointer)
{
	struct fake_range *range = fake_find((uintptr_t)pointer);
	CUresult rc;
	if (pointer == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (range == NULL || range->type != FAKE_REGISTERED || range->start != (uintptr_t)pointer)
		return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	rc = fake_unsafe();
	if (rc != CUDA_SUCCESS)
		return rc;
	fake_wait_until(fake_ctx_tail(range->ctx));
	fake_host_release(range);
	return CUDA_SUCCESS;
}

/* --- what a pointer is ------------------------------------------------------------------------ */

static bool on_host(const struct fake_range *range)
{
	return range->type == FAKE_HOST || range->type == FAKE_REGISTERED;
}

static CUresult put(void *data, size_t bytes, uint64_t value)
{
	memcpy(data, &value, bytes);
	return CUDA_SUCCESS;
}

static uint64_t base_of(const struct fake_range *range)
{
	return range->start & ~(FAKE_PAGE - 1);
}

static CUresult attribute_of(const struct fake_range *r, int attribute, CUdeviceptr at, void *data)
{
	CUcontext ctx = fake_current();
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		return r->ctx == NULL ? CUDA_ERROR_INVALID_VALUE : put(data, 8, (uintptr_t)r->ctx);
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		return put(data, 4, on_host(r) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: return put(data, 8, at);
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		return on_host(r) || r->type == FAKE_MANAGED ? put(data, 8, at)
							     : CUDA_ERROR_INVALID_VALUE;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: return put(data, 4, (uint64_t)r->sync_memops);
	case CU_POINTER_ATTRIBUTE_BUFFER_ID: return put(data, 8, r->id);
	case CU_POINTER_ATTRIBUTE_IS_MANAGED: return put(data, 4, r->type == FAKE_MANAGED);
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return put(data, 4, (uint64_t)r->device);
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		return put(data, 4, r->type == FAKE_DEVICE);
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return put(data, 8, r->start);
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return put(data, 8, r->bytes);
	case CU_POINTER_ATTRIBUTE_MAPPED: return put(data, 4, 1);
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		return put(data, 8,
			   r->physical == NULL ? 0
					       : (uint64_t)r->physical->prop.requestedHandleTypes);
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		return put(data, 4,
			   r->physical == NULL ? r->type == FAKE_DEVICE
					       : r->physical->prop.allocFlags.gpuDirectRDMACapable);
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		return ctx == NULL ? CUDA_ERROR_INVALID_CONTEXT
				   : put(data, 4, fake_may_use(ctx, at, 1, true) ? 3 : 0);
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: return put(data, 8, (uintptr_t)r->pool);
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		return put(data, 8, r->block != NULL ? FAKE_PAGE : r->bytes);
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		return put(data, 8, r->block != NULL ? base_of(r) : r->start);
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		return put(data, 8, r->physical != NULL ? r->physical->id : r->id);
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult fake_do_cuPointerGetAttribute(void *data, int attribute, CUdeviceptr pointer)
{
	struct fake_range *range = fake_find(pointer);
	if (data == NULL || range == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	return attribute_of(range, attribute, pointer, data);
}

/* What does not apply is zero, not an error; an unknown attribute is one. */
CUresult fake_do_cuPointerGetAttributes(unsigned count, int *attributes, void **data,
					CUdeviceptr pointer)
{
	static const unsigned char bytes[] = {0, 8, 4, 8, 8, 0, 4, 8, 4, 4, 4,
					      8, 8, 4, 8, 4, 4, 8, 8, 8, 8};
	struct fake_range *range = fake_find(pointer);
	unsigned i;
	if (count == 0 || attributes == NULL || data == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < count; i++)
		if (attributes[i] < 1 || attributes[i] >= (int)sizeof(bytes) ||
		    bytes[attributes[i]] == 0 || data[i] == NULL)
			return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < count; i++) {
		memset(data[i], 0, bytes[attributes[i]]);
		if (range != NULL)
			attribute_of(range, attributes[i], pointer, data[i]);
		else if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
			put(data[i], 4, (uint32_t)-2);
	}
	return CUDA_SUCCESS;
}

CUresult fake_do_cuPointerSetAttribute(const void *value, int attribute, CUdeviceptr pointer)
{
	struct fake_range *range = fake_find(pointer);
	if (value == NULL || range == NULL || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&range->sync_memops, value, sizeof(int));
	return CUDA_SUCCESS;
}

/* --- arrays: memory without an address -------------------------------------------------------- */

struct CUarray_st {
	enum fake_magic magic;
	uint64_t ctx_id;
	CUcontext ctx;
	struct fake_range *range;
};

struct CUmipmappedArray_st {
	struct CUarray_st array;
};

static size_t element_bytes(int format)
{
	switch (format) {
	case 0x01:
	case 0x08: return 1;
	case 0x02:
	case 0x09:
	case 0x10: return 2;
	case 0x03:
	case 0x0a:
	case 0x20: return 4;
	default: return 0;
	}
}

static CUresult new_array(CUarray *ret_array, const CUDA_ARRAY3D_DESCRIPTOR *d,
			  enum fake_magic magic)
{
	CUcontext ctx = fake_current();
	CUresult rc;
	struct fake_range *range;
	size_t element;
	if (ret_array == NULL || d == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	element = element_bytes(d->Format) * d->NumChannels;
	if (d->Width == 0 || d->Width > 131072 || d->Height > 65536 || d->Depth > 16384 ||
	    element == 0 || (d->NumChannels != 1 && d->NumChannels != 2 && d->NumChannels != 4))
		return CUDA_ERROR_INVALID_VALUE;
	rc = fake_unsafe();
	if (rc != CUDA_SUCCESS)
		return rc;
	range = fake_memory_new(ctx->device, ctx,
				d->Width * element * (d->Height ? d->Height : 1) *
					(d->Depth ? d->Depth : 1),
				FAKE_ARRAY_MEMORY, &rc);
	if (range == NULL)
		return rc;
	*ret_array = fake_object(magic, sizeof(**ret_array));
	(*ret_array)->ctx = ctx;
	(*ret_array)->ctx_id = ctx->id;
	(*ret_array)->range = range;
	return CUDA_SUCCESS;
}

static CUresult free_array(CUarray array, enum fake_magic magic)
{
	if (!fake_is(array, magic))
		return CUDA_ERROR_INVALID_HANDLE;
	if (fake_ctx_alive(array->ctx) && array->ctx->id == array->ctx_id) {
		fake_wait_until(fake_ctx_tail(array->ctx));
		fake_memory_free(array->range);
	}
	fake_object_free(array, sizeof(*array));
	return CUDA_SUCCESS;
}

CUresult fake_do_cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *d)
{
	CUDA_ARRAY3D_DESCRIPTOR three = {0, 0, 0, 0, 0, 0};
	if (d == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	three.Width = d->Width;
	three.Height = d->Height;
	three.Format = d->Format;
	three.NumChannels = d->NumChannels;
	return new_array(array, &three, FAKE_ARRAY);
}

CUresult fake_do_cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	return new_array(array, d, FAKE_ARRAY);
}

CUresult fake_do_cuArrayDestroy(CUarray array)
{
	return free_array(array, FAKE_ARRAY);
}

CUresult fake_do_cuMipmappedArrayCreate(CUmipmappedArray *mipmap, const CUDA_ARRAY3D_DESCRIPTOR *d,
					unsigned levels)
{
	CUarray array;
	CUresult rc;
	if (mipmap == NULL || levels == 0)
		return CUDA_ERROR_INVALID_VALUE;
	rc = new_array(&array, d, FAKE_MIPMAP);
	if (rc == CUDA_SUCCESS)
		*mipmap = (CUmipmappedArray)(void *)array;
	return rc;
}

CUresult fake_do_cuMipmappedArrayDestroy(CUmipmappedArray mipmap)
{
	return free_array((CUarray)(void *)mipmap, FAKE_MIPMAP);
}
