/* SPDX-License-Identifier: MIT */
/*
 * device_mem: cuMemAlloc and cuMemFree. Decides whether a block is reused, and by which back end; keeps
 * what the driver would say: errors, ranges, handles, free memory.
 */
#ifndef TM_CUDA_DEVICE_MEM_H
#define TM_CUDA_DEVICE_MEM_H

#include "shim/base/attrs.h"
#include "shim/base/cuda_types.h"

/*
 * The device is full: everything that is kept for reuse on the current context's device is given back.
 * True: something was, so that the call may be tried once more.
 */
bool tm_device_make_room(void);

/* Somebody has learned the identity of the block that holds this address: it is never reused. */
void tm_device_looked_at(tm_cu_ptr ptr);

/* Memory of cuMemAlloc that a pool made of chunks: the program did not map it and cannot unmap it. */
bool tm_device_is_stitched(tm_cu_ptr ptr);

/* [lock] The context is gone with all its memory. */
void tm_device_forget_context(uint16_t index);

/* The current context's device may, or may no more, use the memory of the peer's device. */
enum tm_device_peer { TM_DEVICE_PEER_ADDED, TM_DEVICE_PEER_REMOVED };
void tm_device_peer(tm_cu_context peer, enum tm_device_peer change);

#endif
