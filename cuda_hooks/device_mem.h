/* SPDX-License-Identifier: MIT */
/*
 * device_mem: cuMemAlloc and cuMemFree. Decides whether a block is reused and by which back end,
 * and makes reused blocks behave as the driver's own in every observable way: errors, address
 * ranges, handles, free memory. Functions are called without tm_hooks_lock unless marked [lock].
 */
#ifndef TM_CUDA_DEVICE_MEM_H
#define TM_CUDA_DEVICE_MEM_H

#include "shim/base/attrs.h"
#include "shim/base/cuda_types.h"

/*
 * Gives everything that is kept for reuse on the current context's device back to the driver. True:
 * something was given back, so the failed call may be retried.
 */
bool tm_device_make_room(void);

/*
 * Marks the block that holds this address as never to be reused, because the program has learned
 * its identity.
 */
void tm_device_looked_at(tm_cu_ptr ptr);

/*
 * Whether the address is memory of cuMemAlloc that a pool mapped from chunks: the program did not
 * map it and must not unmap it.
 */
bool tm_device_is_stitched(tm_cu_ptr ptr);

/* [lock] Forgets a context that has ended, with all its memory. */
void tm_device_forget_context(uint16_t index);

/*
 * Notes that the current context's device may, or may no longer, use the memory of the peer's
 * device.
 */
enum tm_device_peer { TM_DEVICE_PEER_ADDED, TM_DEVICE_PEER_REMOVED };
void tm_device_peer(tm_cu_context peer, enum tm_device_peer change);

#endif
