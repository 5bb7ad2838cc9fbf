/* SPDX-License-Identifier: MIT */
/*
 * device_block: what device_mem.c and device_free.c know of a block's record.
 */
#ifndef TM_CUDA_DEVICE_BLOCK_H
#define TM_CUDA_DEVICE_BLOCK_H

#include "cuda_hooks/pools.h"
#include "cuda_hooks/track.h"
#include "shim/boot.h"

/* A block of a back end names its record there; records are aligned, so that its kind fits below. */
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
