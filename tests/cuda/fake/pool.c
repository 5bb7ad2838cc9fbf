/* SPDX-License-Identifier: MIT */
/*
 * pool: stream-ordered memory. What is freed stays with its pool until the next synchronisation
 * finds more than the threshold idle; it is used again on the same stream at once, on others when
 * its last use has ended.
 */
#include "tests/cuda/fake/fake.h"

#define POOLS 64

static CUmemoryPool pools[POOLS], device_default[FAKE_DEVICES], device_current[FAKE_DEVICES];

static CUmemoryPool new_pool(CUdevice device)
{
	size_t i;
	CUmemoryPool pool = fake_object(FAKE_POOL, sizeof(*pool));
	pool->device = device;
	pool->opportunistic = pool->follow = pool->internal = 1;
	for (i = 0; i < POOLS - 1 && pools[i] != NULL; i++)
		continue;
	pools[i] = pool;
	return pool;
}

CUmemoryPool fake_default_pool(CUdevice device)
{
	if (device_default[device] == NULL) {
		device_default[device] = new_pool(device);
		device_default[device]->is_default = true;
	}
	return device_default[device];
}

static CUmemoryPool current_pool(CUdevice device)
{
	return device_current[device] != NULL ? device_current[device] : fake_default_pool(device);
}

static void release(CUmemoryPool pool, struct fake_range *range)
{
	struct fake_range **at;
	for (at = &pool->idle; *at != range; at = &(*at)->next_idle)
		continue;
	*at = range->next_idle;
	pool->reserved -= range->bytes;
	fake.idle_ranges--;
	fake_memory_free(range);
}

/* Gives idle memory whose last use has ended back to the device, until no more than keep is held. */
void fake_pool_release_idle(CUmemoryPool pool, size_t keep)
{
	struct fake_range *range, *next;
	for (range = pool->idle; range != NULL && pool->reserved > keep; range = next) {
		next = range->next_idle;
		if (range->ready <= fake.now)
			release(pool, range);
	}
}

void fake_pools_trim(void)
{
	size_t i;
	for (i = 0; i < POOLS; i++)
		if (pools[i] != NULL)
			fake_pool_release_idle(pools[i], pools[i]->threshold);
}

static struct fake_range *find_idle(CUmemoryPool pool, size_t bytes, CUstream s)
{
	struct fake_range *range, *best = NULL;
	for (range = pool->idle; range != NULL; range = range->next_idle) {
		if (range->bytes < bytes || range->bytes > 2 * bytes + FAKE_PAGE)
			continue;
		if (range->freed_on != s && !(pool->opportunistic && range->ready <= fake.now))
			continue;
		if (best == NULL || range->bytes < best->bytes)
			best = range;
	}
	return best;
}

struct fake_range *fake_pool_take(CUmemoryPool pool, CUcontext ctx, size_t bytes, CUstream s,
				  CUresult *rc)
{
	size_t whole = (bytes + FAKE_PAGE - 1) & ~(FAKE_PAGE - 1);
	struct fake_range *range = find_idle(pool, whole, s), **at;
	if (range != NULL) {
		for (at = &pool->idle; *at != range; at = &(*at)->next_idle)
			continue;
		*at = range->next_idle;
		range->idle = false;
		range->id = ++fake.next_id;
		fake.idle_ranges--;
	} else {
		if (whole < bytes ||
		    (pool->maximum != 0 && pool->reserved + whole > pool->maximum)) {
			*rc = CUDA_ERROR_OUT_OF_MEMORY;
			return NULL;
		}
		range = fake_memory_new(pool->device, ctx, whole, FAKE_ASYNC, rc);
		if (range == NULL) {
			fake_pool_release_idle(pool, 0);
			range = fake_memory_new(pool->device, ctx, whole, FAKE_ASYNC, rc);
		}
		if (range == NULL)
			return NULL;
		pool->reserved += whole;
	}
	range->pool = pool;
	pool->used += range->bytes;
	if (pool->used > pool->used_high)
		pool->used_high = pool->used;
	if (pool->reserved > pool->reserved_high)
		pool->reserved_high = pool->reserved;
	*rc = CUDA_SUCCESS;
	return range;
}

CUresult fake_async_free(struct fake_range *range, CUstream s, uint64_t ready)
{
	CUmemoryPool pool = range->pool;
	if (range->type == FAKE_GRAPH_MEMORY) {
		fake_wait_until(ready);
		fake_memory_free(range);
		return CUDA_SUCCESS;
	}
	range->idle = true;
	range->ready = ready;
	range->freed_on = s;
	range->next_idle = pool->idle;
	pool->idle = range;
	pool->used -= range->bytes;
	fake.idle_ranges++;
	if (pool->dying) {
		fake_wait_until(ready);
		release(pool, range);
	}
	return CUDA_SUCCESS;
}

/* --- the driver's functions ------------------------------------------------------------------- */

static CUresult alloc_async(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream given)
{
	CUresult rc;
	CUstream s = fake_stream_of(given, &rc);
	struct fake_range *range;
	if (s == NULL)
		return rc;
	if (pointer == NULL || bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (s->capture != CU_STREAM_CAPTURE_STATUS_NONE)
		return fake_capture_alloc(s, pointer, bytes);
	range = fake_pool_take(pool, s->ctx, bytes, s, &rc);
	if (range != NULL)
		*pointer = range->start;
	return rc;
}

CUresult fake_do_cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream)
{
	return alloc_async(pointer, bytes, current_pool(fake_current()->device), stream);
}

CUresult fake_do_cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool,
					 CUstream stream)
{
	return fake_is(pool, FAKE_POOL) ? alloc_async(pointer, bytes, pool, stream)
					: CUDA_ERROR_INVALID_VALUE;
}

/* Memory of cuMemAlloc may be freed this way too. */
CUresult fake_do_cuMemFreeAsync(CUdeviceptr pointer, CUstream given)
{
	CUresult rc;
	CUstream s = fake_stream_of(given, &rc);
	struct fake_range *range = fake_find(pointer);
	if (s == NULL)
		return rc;
	if (range == NULL || range->start != pointer ||
	    (range->type != FAKE_ASYNC && range->type != FAKE_DEVICE &&
	     range->type != FAKE_GRAPH_MEMORY))
		return CUDA_ERROR_INVALID_VALUE;
	if (s->capture != CU_STREAM_CAPTURE_STATUS_NONE)
		return fake_capture_free(s, pointer);
	if (range->type == FAKE_DEVICE) {
		fake_wait_until(fake_stream_tail(s));
		fake_memory_free(range);
		return CUDA_SUCCESS;
	}
	return fake_async_free(range, s, fake_stream_tail(s));
}

CUresult fake_do_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
	if (pool == NULL || props == NULL || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
	    props->location.type != CU_MEM_LOCATION_TYPE_DEVICE || props->location.id < 0 ||
	    props->location.id >= fake.devices)
		return CUDA_ERROR_INVALID_VALUE;
	*pool = new_pool(props->location.id);
	(*pool)->maximum = props->maxSize;
	return CUDA_SUCCESS;
}

CUresult fake_do_cuMemPoolDestroy(CUmemoryPool pool)
{
	size_t i;
	if (!fake_is(pool, FAKE_POOL) || pool->is_default)
		return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < FAKE_DEVICES; i++)
		if (device_current[i] == pool)
			device_current[i] = NULL;
	for (i = 0; i < POOLS; i++)
		if (pools[i] == pool)
			pools[i] = NULL;
	while (pool->idle != NULL) {
		fake_wait_until(pool->idle->ready);
		release(pool, pool->idle);
	}
	/* What is still in use holds on to it; the handle is no longer known. */
	pool->dying = true;
	pool->magic = FAKE_DEAD;
	if (pool->used == 0)
		fake_object_free(pool, sizeof(*pool));
	return CUDA_SUCCESS;
}

CUresult fake_do_cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
	if (!fake_is(pool, FAKE_POOL))
		return CUDA_ERROR_INVALID_VALUE;
	fake_pool_release_idle(pool, keep);
	return CUDA_SUCCESS;
}

static uint64_t *large_attribute(CUmemoryPool pool, int attribute)
{
	switch (attribute) {
	case 4: return &pool->threshold;
	case 5: return &pool->reserved;
	case 6: return &pool->reserved_high;
	case 7: return &pool->used;
	case 8: return &pool->used_high;
	default: return NULL;
	}
}

static int *small_attribute(CUmemoryPool pool, int attribute)
{
	switch (attribute) {
	case 1: return &pool->follow;
	case 2: return &pool->opportunistic;
	case 3: return &pool->internal;
	default: return NULL;
	}
}

CUresult fake_do_cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value)
{
	if (!fake_is(pool, FAKE_POOL) || value == NULL || attribute < 1 || attribute > 8)
		return CUDA_ERROR_INVALID_VALUE;
	if (large_attribute(pool, attribute) != NULL)
		memcpy(value, large_attribute(pool, attribute), 8);
	else
		memcpy(value, small_attribute(pool, attribute), 4);
	return CUDA_SUCCESS;
}

CUresult fake_do_cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value)
{
	uint64_t zero;
	if (!fake_is(pool, FAKE_POOL) || value == NULL || attribute < 1 || attribute > 8 ||
	    attribute == 5 || attribute == 7)
		return CUDA_ERROR_INVALID_VALUE;
	if (small_attribute(pool, attribute) != NULL) {
		memcpy(small_attribute(pool, attribute), value, 4);
		return CUDA_SUCCESS;
	}
	memcpy(&zero, value, 8);
	/* High water marks can only be set back. */
	if (attribute != 4 && zero != 0)
		return CUDA_ERROR_INVALID_VALUE;
	*large_attribute(pool, attribute) = zero;
	return CUDA_SUCCESS;
}

CUresult fake_do_cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
	return !fake_is(pool, FAKE_POOL) || (map == NULL && count != 0) ? CUDA_ERROR_INVALID_VALUE
									: CUDA_SUCCESS;
}

static bool is_device(CUdevice device)
{
	return device >= 0 && device < fake.devices;
}

CUresult fake_do_cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
	if (pool == NULL || !is_device(device))
		return pool == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
	*pool = fake_default_pool(device);
	return CUDA_SUCCESS;
}

CUresult fake_do_cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
	if (pool == NULL || !is_device(device))
		return pool == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
	*pool = current_pool(device);
	return CUDA_SUCCESS;
}

CUresult fake_do_cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
	if (!is_device(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!fake_is(pool, FAKE_POOL) || pool->device != device)
		return CUDA_ERROR_INVALID_VALUE;
	device_current[device] = pool;
	return CUDA_SUCCESS;
}

static bool is_location(const CUmemLocation *location, int type)
{
	return location != NULL && location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
	       type == CU_MEM_ALLOCATION_TYPE_PINNED;
}

CUresult fake_do_cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, int type)
{
	return is_location(location, type) ? fake_do_cuDeviceGetDefaultMemPool(pool, location->id)
					   : CUDA_ERROR_INVALID_VALUE;
}

CUresult fake_do_cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, int type)
{
	return is_location(location, type) ? fake_do_cuDeviceGetMemPool(pool, location->id)
					   : CUDA_ERROR_INVALID_VALUE;
}

CUresult fake_do_cuMemSetMemPool(CUmemLocation *location, int type, CUmemoryPool pool)
{
	return is_location(location, type) ? fake_do_cuDeviceSetMemPool(location->id, pool)
					   : CUDA_ERROR_INVALID_VALUE;
}
