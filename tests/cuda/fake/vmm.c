/* SPDX-License-Identifier: MIT */
/* vmm: addresses, physical memory, and mappings of the one to the other. */
#include "tests/cuda/fake/fake.h"

#include <unistd.h>

static struct fake_physical *physical_of(CUmemGenericAllocationHandle handle)
{
	struct fake_physical *p = (struct fake_physical *)(uintptr_t)handle;
	return fake_is(p, FAKE_HANDLE) && p->handles > 0 ? p : NULL;
}

static bool whole(CUdeviceptr at, size_t bytes)
{
	return bytes > 0 && at % FAKE_PAGE == 0 && bytes % FAKE_PAGE == 0 && at + bytes > at;
}

CUresult fake_do_cuMemAddressReserve(CUdeviceptr *pointer, size_t bytes, size_t align,
				     CUdeviceptr hint, unsigned long long flags)
{
	CUdeviceptr start;
	(void)hint;
	if (pointer == NULL || bytes == 0 || bytes % FAKE_PAGE != 0 || flags != 0 ||
	    (align & (align - 1)) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	start = bytes > fake.va_bytes ? 0 : fake_va_take(&fake_device_va, bytes, align);
	if (start == 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	fake_tree_add(&fake_reserves, fake_range_new(FAKE_RESERVED, start, bytes));
	*pointer = start;
	return CUDA_SUCCESS;
}

CUresult fake_do_cuMemAddressFree(CUdeviceptr pointer, size_t bytes)
{
	struct fake_range *reserve = fake_tree_find(&fake_reserves, pointer), *inside;
	if (reserve == NULL || reserve->start != pointer || reserve->bytes != bytes)
		return CUDA_ERROR_INVALID_VALUE;
	inside = fake_tree_from(&fake_ranges, pointer);
	if (inside != NULL && inside->start < pointer + bytes)
		return CUDA_ERROR_INVALID_VALUE;
	fake_va_give(&fake_device_va, pointer, bytes);
	fake_tree_remove(&fake_reserves, reserve);
	free(reserve);
	return CUDA_SUCCESS;
}

CUresult fake_do_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
			     const CUmemAllocationProp *prop, unsigned long long flags)
{
	struct fake_physical *p;
	CUresult rc;
	if (handle == NULL || prop == NULL || bytes == 0 || bytes % FAKE_PAGE != 0 || flags != 0 ||
	    prop->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
	    prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE || prop->requestedHandleTypes > 1)
		return CUDA_ERROR_INVALID_VALUE;
	if (prop->location.id < 0 || prop->location.id >= fake.devices)
		return CUDA_ERROR_INVALID_DEVICE;
	rc = fake_unsafe();
	if (rc != CUDA_SUCCESS)
		return rc;
	p = fake_physical_new(prop->location.id, bytes, &rc);
	if (p == NULL)
		return rc;
	p->prop = *prop;
	*handle = (uintptr_t)p;
	return CUDA_SUCCESS;
}

CUresult fake_do_cuMemRelease(CUmemGenericAllocationHandle handle)
{
	struct fake_physical *p = physical_of(handle);
	if (p == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	p->handles--;
	fake_physical_put(p);
	return CUDA_SUCCESS;
}

CUresult fake_do_cuMemMap(CUdeviceptr pointer, size_t bytes, size_t offset,
			  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	struct fake_physical *p = physical_of(handle);
	struct fake_range *reserve = fake_tree_find(&fake_reserves, pointer), *range;
	size_t n;
	if (p == NULL || reserve == NULL || !whole(pointer, bytes) || offset != 0 || flags != 0 ||
	    bytes != p->pages * FAKE_PAGE || pointer + bytes > reserve->start + reserve->bytes)
		return CUDA_ERROR_INVALID_VALUE;
	range = fake_tree_from(&fake_ranges, pointer);
	if (fake_tree_find(&fake_ranges, pointer) != NULL ||
	    (range != NULL && range->start < pointer + bytes))
		return CUDA_ERROR_INVALID_VALUE;
	for (n = 0; n < p->pages; n++)
		fake_translate_set(pointer + n * FAKE_PAGE, p->alias[n]);
	range = fake_range_new(FAKE_MAPPED, pointer, bytes);
	range->device = p->device;
	range->physical = p;
	p->refs++;
	fake_tree_add(&fake_ranges, range);
	return CUDA_SUCCESS;
}

/* Ends a mapping, or another process's memory here. */
void fake_unmap_range(struct fake_range *range)
{
	CUdeviceptr base = range->start & ~(FAKE_PAGE - 1);
	size_t n;
	for (n = 0; n < range->physical->pages; n++)
		fake_translate_set(base + n * FAKE_PAGE, NULL);
	if (range->type == FAKE_IPC)
		fake_va_give(&fake_device_va, base, range->physical->pages * FAKE_PAGE);
	fake_physical_put(range->physical);
	fake_tree_remove(&fake_ranges, range);
	free(range);
}

/* Are these bytes whole mappings, each of them? */
static bool covered(CUdeviceptr at, size_t bytes)
{
	CUdeviceptr end = at + bytes;
	while (at < end) {
		struct fake_range *range = fake_tree_find(&fake_ranges, at);
		if (range == NULL || range->type != FAKE_MAPPED || range->start != at)
			return false;
		at += range->bytes;
	}
	return at == end;
}

/* Does not wait for work that uses the memory. */
CUresult fake_do_cuMemUnmap(CUdeviceptr pointer, size_t bytes)
{
	CUdeviceptr at = pointer;
	if (!whole(pointer, bytes) || !covered(pointer, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	while (at < pointer + bytes) {
		struct fake_range *range = fake_tree_find(&fake_ranges, at);
		at += range->bytes;
		fake_unmap_range(range);
	}
	return CUDA_SUCCESS;
}

CUresult fake_do_cuMemSetAccess(CUdeviceptr pointer, size_t bytes, const CUmemAccessDesc *desc,
				size_t count)
{
	size_t i;
	CUdeviceptr at;
	if (desc == NULL || count == 0 || !whole(pointer, bytes) || !covered(pointer, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < count; i++)
		if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
		    desc[i].location.id < 0 || desc[i].location.id >= fake.devices)
			return CUDA_ERROR_INVALID_DEVICE;
	for (at = pointer; at < pointer + bytes;) {
		struct fake_range *range = fake_tree_find(&fake_ranges, at);
		for (i = 0; i < count; i++) {
			unsigned bit = 1u << desc[i].location.id;
			if (!fake.peers && desc[i].location.id != range->device)
				return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
			range->readers =
				desc[i].flags & 1 ? range->readers | bit : range->readers & ~bit;
			range->writers =
				desc[i].flags & 2 ? range->writers | bit : range->writers & ~bit;
		}
		at += range->bytes;
	}
	return CUDA_SUCCESS;
}

CUresult fake_do_cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
				CUdeviceptr pointer)
{
	struct fake_range *range = fake_find(pointer);
	if (flags == NULL || location == NULL || range == NULL || range->type != FAKE_MAPPED ||
	    location->id < 0 || location->id >= fake.devices)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = (range->readers >> location->id & 1) | (range->writers >> location->id & 1) << 1;
	return CUDA_SUCCESS;
}

CUresult fake_do_cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *prop,
					       int option)
{
	if (bytes == NULL || prop == NULL || option < 0 || option > 1)
		return CUDA_ERROR_INVALID_VALUE;
	*bytes = FAKE_PAGE;
	return CUDA_SUCCESS;
}

CUresult fake_do_cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
							CUmemGenericAllocationHandle handle)
{
	struct fake_physical *p = physical_of(handle);
	if (prop == NULL || p == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*prop = p->prop;
	return CUDA_SUCCESS;
}

CUresult fake_do_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *pointer)
{
	struct fake_range *range = fake_find((uintptr_t)pointer);
	if (handle == NULL || range == NULL || range->type != FAKE_MAPPED)
		return CUDA_ERROR_INVALID_VALUE;
	range->physical->refs++;
	range->physical->handles++;
	*handle = (uintptr_t)range->physical;
	return CUDA_SUCCESS;
}

CUresult fake_do_cuMemExportToShareableHandle(void *shared, CUmemGenericAllocationHandle handle,
					      int type, unsigned long long flags)
{
	struct fake_physical *p = physical_of(handle);
	int fd;
	if (shared == NULL || p == NULL || flags != 0 ||
	    type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
	    !(p->prop.requestedHandleTypes & type))
		return CUDA_ERROR_INVALID_VALUE;
	fd = fake_token_new(p->device, p->pages * FAKE_PAGE, 0, p->page, p->pages, &p->prop);
	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	memcpy(shared, &fd, sizeof(fd));
	return CUDA_SUCCESS;
}

CUresult fake_do_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shared,
						int type)
{
	struct fake_physical *p;
	size_t bytes, offset;
	if (handle == NULL || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	p = fake_token_open(getpid(), (int)(intptr_t)shared, &bytes, &offset);
	if (p == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*handle = (uintptr_t)p;
	return CUDA_SUCCESS;
}

CUresult fake_do_cuMemGetHandleForAddressRange(void *handle, CUdeviceptr pointer, size_t bytes,
					       int type, unsigned long long flags)
{
	struct fake_range *range = fake_find(pointer);
	size_t host_page = (size_t)64 << 10;
	int fd;
	if (handle == NULL || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || flags > 1 ||
	    bytes == 0 || pointer % host_page != 0 || bytes % host_page != 0 || range == NULL ||
	    pointer + bytes > range->start + range->bytes)
		return CUDA_ERROR_INVALID_VALUE;
	fd = dup(fake_memory_fd(range->device));
	memcpy(handle, &fd, sizeof(fd));
	return fd < 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}
