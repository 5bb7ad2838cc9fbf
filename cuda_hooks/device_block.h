/* SPDX-License-Identifier: MIT */
/*
 * device_block: access to the fields of a block's record that device_mem.c and device_free.c share.
 */
#ifndef TM_CUDA_DEVICE_BLOCK_H
#define TM_CUDA_DEVICE_BLOCK_H

#include "cuda_hooks/pools.h"
#include "cuda_hooks/track.h"
#include "shim/boot.h"

/*
 * `owner` of a block from a back end is the address of the back end's record, with its kind in the
 * low bits (records are aligned). 0: a block of the driver.
 */
#define TM_OWNER_CHUNK 1u
#define TM_OWNER_RANGE 2u
#define TM_OWNER_MASK 3u

TM_INLINE struct tm_chunk *tm_device_chunk(const struct tm_track_block *b)
{
	return (b->owner & TM_OWNER_MASK) == TM_OWNER_CHUNK
		       ? (struct tm_chunk *)(b->owner - TM_OWNER_CHUNK)
		       : NULL;
}

TM_INLINE struct tm_range *tm_device_range(const struct tm_track_block *b)
{
	return (b->owner & TM_OWNER_MASK) == TM_OWNER_RANGE
		       ? (struct tm_range *)(b->owner - TM_OWNER_RANGE)
		       : NULL;
}

TM_INLINE bool tm_device_by_event(void)
{
	return tm_root.options.cuda_free_sync == TM_CUDA_FREE_EVENT;
}

#endif
