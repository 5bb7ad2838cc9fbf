/* SPDX-License-Identifier: MIT */
/*
 * host_mem: pinned host memory of cuMemAllocHost and cuMemHostAlloc.
 */
#include "cuda_hooks/driver.h"
#include "cuda_hooks/hooks.h"
#include "cuda_hooks/note.h"

tm_cu_result tm_on_cuMemAllocHost_v2(void **ptr, size_t bytes)
{
	tm_cu_result rc = tm_driver.cuMemAllocHost_v2(ptr, bytes);
	if (rc == TM_CU_SUCCESS)
		tm_note_add(TM_TRACK_ADDRESS, (uintptr_t)*ptr, bytes, TM_LEDGER_GPU_PINNED);
	return rc;
}

tm_cu_result tm_on_cuMemHostAlloc(void **ptr, size_t bytes, unsigned int flags)
{
	tm_cu_result rc = tm_driver.cuMemHostAlloc(ptr, bytes, flags);
	if (rc == TM_CU_SUCCESS)
		tm_note_add(TM_TRACK_ADDRESS, (uintptr_t)*ptr, bytes, TM_LEDGER_GPU_PINNED);
	return rc;
}

tm_cu_result tm_on_cuMemFreeHost(void *ptr)
{
	struct tm_track_block was;
	bool known = tm_note_release(TM_TRACK_ADDRESS, (uintptr_t)ptr, &was);
	tm_cu_result rc = tm_driver.cuMemFreeHost(ptr);
	if (rc != TM_CU_SUCCESS && known)
		tm_note_undo(TM_TRACK_ADDRESS, (uintptr_t)ptr, &was);
	return rc;
}
