/* SPDX-License-Identifier: MIT */
/*
 * other_mem: memory that is accounted for but never reused: managed, stream-ordered, arrays,
 * physical memory of the virtual-memory calls, memory lent by other processes, and pinned host
 * pages.
 */
#include "cuda_hooks/context.h"
#include "cuda_hooks/device_mem.h"
#include "cuda_hooks/driver.h"
#include "cuda_hooks/hooks.h"
#include "cuda_hooks/note.h"

/* An allocation: if the device is full and the pools give something back, it is retried once. */
#define TRY(rc, call)                                                                              \
	do {                                                                                       \
		(rc) = (call);                                                                     \
		if (TM_UNLIKELY((rc) == TM_CU_OUT_OF_MEMORY) && tm_device_make_room())             \
			(rc) = (call);                                                             \
	} while (0)

/* A release: the record is dropped before the call and restored if it fails. */
#define RELEASE(space, value, call)                                                                \
	do {                                                                                       \
		struct tm_track_block was;                                                         \
		bool known = tm_note_release(space, value, &was);                                  \
		tm_cu_result rc = (call);                                                          \
		if (rc != TM_CU_SUCCESS && known)                                                  \
			tm_note_undo(space, value, &was);                                          \
		return rc;                                                                         \
	} while (0)

/* --- managed ---------------------------------------------------------------------------------------- */

tm_cu_result tm_on_cuMemAllocManaged(tm_cu_ptr *ptr, size_t bytes, unsigned int flags)
{
	tm_cu_result rc;
	TRY(rc, tm_driver.cuMemAllocManaged(ptr, bytes, flags));
	if (rc == TM_CU_SUCCESS)
		tm_note_add(TM_TRACK_ADDRESS, *ptr, bytes, TM_LEDGER_GPU_MANAGED);
	return rc;
}

/* --- stream-ordered ------------------------------------------------------------------------------------ */

static tm_cu_result noted_async(tm_cu_result rc, const tm_cu_ptr *ptr, size_t bytes)
{
	/* During a capture this is the address of a graph node; it is recorded just the same. */
	if (rc == TM_CU_SUCCESS)
		tm_note_add(TM_TRACK_ADDRESS, *ptr, bytes, TM_LEDGER_GPU_ASYNC);
	return rc;
}

tm_cu_result tm_on_cuMemAllocAsync(tm_cu_ptr *ptr, size_t bytes, tm_cu_stream stream)
{
	tm_cu_result rc;
	TRY(rc, tm_driver.cuMemAllocAsync(ptr, bytes, stream));
	return noted_async(rc, ptr, bytes);
}

tm_cu_result tm_on_cuMemAllocAsync_ptsz(tm_cu_ptr *ptr, size_t bytes, tm_cu_stream stream)
{
	tm_cu_result rc;
	TRY(rc, tm_driver.cuMemAllocAsync_ptsz(ptr, bytes, stream));
	return noted_async(rc, ptr, bytes);
}

tm_cu_result tm_on_cuMemAllocFromPoolAsync(tm_cu_ptr *ptr, size_t bytes, tm_cu_mempool pool,
					   tm_cu_stream stream)
{
	tm_cu_result rc;
	TRY(rc, tm_driver.cuMemAllocFromPoolAsync(ptr, bytes, pool, stream));
	return noted_async(rc, ptr, bytes);
}

tm_cu_result tm_on_cuMemAllocFromPoolAsync_ptsz(tm_cu_ptr *ptr, size_t bytes, tm_cu_mempool pool,
						tm_cu_stream stream)
{
	tm_cu_result rc;
	TRY(rc, tm_driver.cuMemAllocFromPoolAsync_ptsz(ptr, bytes, pool, stream));
	return noted_async(rc, ptr, bytes);
}

tm_cu_result tm_on_cuMemPoolImportPointer(tm_cu_ptr *ptr, tm_cu_mempool pool,
					  tm_cu_pool_export *data)
{
	tm_cu_result rc = tm_driver.cuMemPoolImportPointer(ptr, pool, data);
	/* Only the owner process knows the size. */
	if (rc == TM_CU_SUCCESS)
		tm_note_add(TM_TRACK_ADDRESS, *ptr, 0, TM_LEDGER_GPU_IPC);
	return rc;
}

/* --- arrays ---------------------------------------------------------------------------------------------- */

/* Bytes of an element by CUarray_format; 1 for block-compressed and planar formats. */
static size_t element_bytes(int format)
{
	switch (format) {
	case 0x02:
	case 0x09:
	case 0x10: return 2;
	case 0x03:
	case 0x0a:
	case 0x20: return 4;
	default: return 1;
	}
}

static uint64_t array_bytes(size_t width, size_t height, size_t depth, size_t element)
{
	return (uint64_t)(width == 0 ? 1 : width) * (height == 0 ? 1 : height) *
	       (depth == 0 ? 1 : depth) * element;
}

tm_cu_result tm_on_cuArrayCreate_v2(tm_cu_array *array, const tm_cu_array_shape *shape)
{
	tm_cu_result rc;
	TRY(rc, tm_driver.cuArrayCreate_v2(array, shape));
	if (rc == TM_CU_SUCCESS)
		tm_note_add(TM_TRACK_ARRAY, (uintptr_t)*array,
			    array_bytes(shape->Width, shape->Height, 1,
					shape->NumChannels * element_bytes(shape->Format)),
			    TM_LEDGER_GPU_ARRAY);
	return rc;
}

tm_cu_result tm_on_cuArray3DCreate_v2(tm_cu_array *array, const tm_cu_array3d_shape *shape)
{
	tm_cu_result rc;
	TRY(rc, tm_driver.cuArray3DCreate_v2(array, shape));
	if (rc == TM_CU_SUCCESS)
		tm_note_add(TM_TRACK_ARRAY, (uintptr_t)*array,
			    array_bytes(shape->Width, shape->Height, shape->Depth,
					shape->NumChannels * element_bytes(shape->Format)),
			    TM_LEDGER_GPU_ARRAY);
	return rc;
}

tm_cu_result tm_on_cuMipmappedArrayCreate(tm_cu_mipmap *array, const tm_cu_array3d_shape *shape,
					  unsigned int levels)
{
	tm_cu_result rc;
	uint64_t bytes;
	TRY(rc, tm_driver.cuMipmappedArrayCreate(array, shape, levels));
	if (rc != TM_CU_SUCCESS)
		return rc;
	bytes = array_bytes(shape->Width, shape->Height, shape->Depth,
			    shape->NumChannels * element_bytes(shape->Format));
	/* A full mipmap chain, each side half as long, adds a third. */
	tm_note_add(TM_TRACK_ARRAY, (uintptr_t)*array, levels > 1 ? bytes + bytes / 3 : bytes,
		    TM_LEDGER_GPU_ARRAY);
	return rc;
}

tm_cu_result tm_on_cuArrayDestroy(tm_cu_array array)
{
	RELEASE(TM_TRACK_ARRAY, (uintptr_t)array, tm_driver.cuArrayDestroy(array));
}

tm_cu_result tm_on_cuMipmappedArrayDestroy(tm_cu_mipmap array)
{
	RELEASE(TM_TRACK_ARRAY, (uintptr_t)array, tm_driver.cuMipmappedArrayDestroy(array));
}

/* --- physical memory: it is there until its last reference and its last mapping are gone ------------ */

tm_cu_result tm_on_cuMemCreate(tm_cu_handle *handle, size_t bytes, const tm_cu_prop *prop,
			       unsigned long long flags)
{
	tm_cu_result rc;
	TRY(rc, tm_driver.cuMemCreate(handle, bytes, prop, flags));
	if (rc == TM_CU_SUCCESS)
		tm_note_add(TM_TRACK_HANDLE, *handle, bytes, TM_LEDGER_GPU_VMM);
	return rc;
}

tm_cu_result tm_on_cuMemRelease(tm_cu_handle handle)
{
	RELEASE(TM_TRACK_HANDLE, handle, tm_driver.cuMemRelease(handle));
}

tm_cu_result tm_on_cuMemImportFromShareableHandle(tm_cu_handle *handle, void *shared,
						  tm_cu_handle_type type)
{
	tm_cu_result rc = tm_driver.cuMemImportFromShareableHandle(handle, shared, type);
	/* Only the owner process knows the size. */
	if (rc == TM_CU_SUCCESS)
		tm_note_add(TM_TRACK_HANDLE, *handle, 0, TM_LEDGER_GPU_IPC);
	return rc;
}

tm_cu_result tm_on_cuMemMap(tm_cu_ptr ptr, size_t bytes, size_t offset, tm_cu_handle handle,
			    unsigned long long flags)
{
	tm_cu_result rc = tm_driver.cuMemMap(ptr, bytes, offset, handle, flags);
	if (rc == TM_CU_SUCCESS)
		tm_note_map(ptr, bytes, handle);
	return rc;
}

tm_cu_result tm_on_cuMemUnmap(tm_cu_ptr ptr, size_t bytes)
{
	tm_cu_result rc;
	if (tm_device_is_stitched(ptr) && tm_context_refusal(tm_context_current()) == TM_CU_SUCCESS)
		return TM_CU_INVALID_VALUE;
	rc = tm_driver.cuMemUnmap(ptr, bytes);
	if (rc == TM_CU_SUCCESS)
		tm_note_unmap(ptr, bytes);
	return rc;
}

tm_cu_result tm_on_cuMemRetainAllocationHandle(tm_cu_handle *handle, void *at)
{
	tm_cu_result rc = tm_driver.cuMemRetainAllocationHandle(handle, at);
	if (rc != TM_CU_SUCCESS)
		return rc;
	tm_device_looked_at((uintptr_t)at);
	tm_note_again(TM_TRACK_HANDLE, *handle);
	return rc;
}

/* --- between processes ------------------------------------------------------------------------------- */

static tm_cu_result noted_opened(tm_cu_result rc, const tm_cu_ptr *ptr)
{
	size_t bytes = 0;
	tm_cu_ptr base = 0;
	/* A handle that is opened twice gives one address, which must be closed twice. */
	if (rc != TM_CU_SUCCESS || tm_note_again(TM_TRACK_ADDRESS, *ptr))
		return rc;
	if (tm_driver.cuMemGetAddressRange_v2 == NULL ||
	    tm_driver.cuMemGetAddressRange_v2(&base, &bytes, *ptr) != TM_CU_SUCCESS)
		bytes = 0;
	tm_note_add(TM_TRACK_ADDRESS, *ptr, bytes, TM_LEDGER_GPU_IPC);
	return rc;
}

tm_cu_result tm_on_cuIpcOpenMemHandle(tm_cu_ptr *ptr, tm_cu_ipc handle, unsigned int flags)
{
	return noted_opened(tm_driver.cuIpcOpenMemHandle(ptr, handle, flags), ptr);
}

tm_cu_result tm_on_cuIpcOpenMemHandle_v2(tm_cu_ptr *ptr, tm_cu_ipc handle, unsigned int flags)
{
	return noted_opened(tm_driver.cuIpcOpenMemHandle_v2(ptr, handle, flags), ptr);
}

tm_cu_result tm_on_cuIpcCloseMemHandle(tm_cu_ptr ptr)
{
	RELEASE(TM_TRACK_ADDRESS, ptr, tm_driver.cuIpcCloseMemHandle(ptr));
}

/* --- host pages of the program -------------------------------------------------------------------------- */

static tm_cu_result noted_pin(tm_cu_result rc, const void *ptr, size_t bytes)
{
	if (rc == TM_CU_SUCCESS)
		tm_note_add(TM_TRACK_REGISTERED, (uintptr_t)ptr, bytes, TM_LEDGER_GPU_REGISTERED);
	return rc;
}

tm_cu_result tm_on_cuMemHostRegister(void *ptr, size_t bytes, unsigned int flags)
{
	return noted_pin(tm_driver.cuMemHostRegister(ptr, bytes, flags), ptr, bytes);
}

tm_cu_result tm_on_cuMemHostRegister_v2(void *ptr, size_t bytes, unsigned int flags)
{
	return noted_pin(tm_driver.cuMemHostRegister_v2(ptr, bytes, flags), ptr, bytes);
}

tm_cu_result tm_on_cuMemHostUnregister(void *ptr)
{
	RELEASE(TM_TRACK_REGISTERED, (uintptr_t)ptr, tm_driver.cuMemHostUnregister(ptr));
}
