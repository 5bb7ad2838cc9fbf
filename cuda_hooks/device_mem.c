/* SPDX-License-Identifier: MIT */
#include "cuda_hooks/device_mem.h"

#include "cuda_hooks/context.h"
#include "cuda_hooks/driver.h"
#include "cuda_hooks/hooks.h"
#include "cuda_hooks/note.h"

tm_cu_result tm_on_cuMemAlloc_v2(tm_cu_ptr *ptr, size_t bytes)
{
	tm_cu_result rc = tm_driver.cuMemAlloc_v2(ptr, bytes);
	if (rc == TM_CU_SUCCESS)
		tm_note_add(TM_TRACK_ADDRESS, *ptr, bytes, TM_LEDGER_GPU_DEVICE);
	return rc;
}

tm_cu_result tm_on_cuMemAllocPitch_v2(tm_cu_ptr *ptr, size_t *pitch, size_t width, size_t height,
				      unsigned int element)
{
	tm_cu_result rc = tm_driver.cuMemAllocPitch_v2(ptr, pitch, width, height, element);
	if (rc == TM_CU_SUCCESS)
		tm_note_add(TM_TRACK_ADDRESS, *ptr, *pitch * height, TM_LEDGER_GPU_DEVICE);
	return rc;
}

static tm_cu_result after_free(tm_cu_result rc, tm_cu_ptr ptr, bool known,
			       const struct tm_track_block *was)
{
	if (rc != TM_CU_SUCCESS && known)
		tm_note_undo(TM_TRACK_ADDRESS, ptr, was);
	return rc;
}

tm_cu_result tm_on_cuMemFree_v2(tm_cu_ptr ptr)
{
	struct tm_track_block was;
	bool known = tm_note_release(TM_TRACK_ADDRESS, ptr, &was);
	return after_free(tm_driver.cuMemFree_v2(ptr), ptr, known, &was);
}

tm_cu_result tm_on_cuMemFreeAsync(tm_cu_ptr ptr, tm_cu_stream stream)
{
	struct tm_track_block was;
	bool known = tm_note_release(TM_TRACK_ADDRESS, ptr, &was);
	return after_free(tm_driver.cuMemFreeAsync(ptr, stream), ptr, known, &was);
}

tm_cu_result tm_on_cuMemFreeAsync_ptsz(tm_cu_ptr ptr, tm_cu_stream stream)
{
	struct tm_track_block was;
	bool known = tm_note_release(TM_TRACK_ADDRESS, ptr, &was);
	return after_free(tm_driver.cuMemFreeAsync_ptsz(ptr, stream), ptr, known, &was);
}

tm_cu_result tm_on_cuMemGetInfo_v2(size_t *available, size_t *total)
{
	return tm_driver.cuMemGetInfo_v2(available, total);
}

tm_cu_result tm_on_cuIpcGetMemHandle(tm_cu_ipc *handle, tm_cu_ptr ptr)
{
	return tm_driver.cuIpcGetMemHandle(handle, ptr);
}

bool tm_device_make_room(void)
{
	return false;
}

void tm_device_looked_at(tm_cu_ptr ptr)
{
	(void)ptr;
}

void tm_device_forget_context(uint16_t index)
{
	tm_track_forget_context(index, NULL);
	tm_context_forget(index);
}

void tm_device_peer(tm_cu_context peer, enum tm_device_peer change)
{
	(void)peer;
	(void)change;
}
