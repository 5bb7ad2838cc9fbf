/* SPDX-License-Identifier: MIT */
/*
 * pools: the back ends of each context, how much they may keep idle, and which one serves a
 * request. Also knows the devices: their memory, whether they can map chunks, and who may access
 * them.
 */
#ifndef TM_CUDA_POOLS_H
#define TM_CUDA_POOLS_H

#include "cuda_hooks/context.h"
#include "cuda_hooks/pool_cache.h"
#include "cuda_hooks/pool_slab.h"
#include "cuda_hooks/pool_vmm.h"
#include "cuda_hooks/sites.h"
#include "shim/base/ledger_format.h"

struct tm_pools {
	uint64_t keep_least; /* bytes that may always be idle, however little is live */
	uint64_t hits, misses;
	struct tm_pool_vmm vmm;
	struct tm_pool_cache whole;
	struct tm_pool_cache host;
	struct tm_pool_slab slab;
};

enum tm_pools_use { TM_POOLS_NONE, TM_POOLS_WHOLE, TM_POOLS_SLAB, TM_POOLS_VMM };

struct tm_pools *tm_pools_make(uint16_t context); /* creates them; see tm_pools_of */

/* [lock] The pools of a context, created if missing. NULL: no memory. */
TM_INLINE struct tm_pools *tm_pools_of(uint16_t context)
{
	struct tm_pools *p = tm_context_at(context)->pools;
	return TM_LIKELY(p != NULL) ? p : tm_pools_make(context);
}

/* Whether a library is loaded that registers or shares device memory. Called without the lock. */
bool tm_pools_sharing(uint32_t now_ms);
/* False if a call site lies in one of those libraries. Called without the lock. */
bool tm_pools_site_is_fine(uintptr_t site);
/* A handle for another process was made: switches the back ends that cut memory off for good. */
void tm_pools_shared(void);

/* [lock] Chooses the back end for a request. */
enum tm_pools_use tm_pools_choose(uint16_t context, uint64_t bytes,
				  const struct tm_sites_verdict *v, bool sharing);

/* [lock] Bytes that may lie idle on a context's device. */
uint64_t tm_pools_budget(uint16_t context);
/*
 * [lock] Besides the budget, room for one block of the last request's size: otherwise the next
 * request would make it anew, and on a small device one block may exceed the budget. At most half
 * of the device, since others use it, too. tm_pools_is_low: whether the device has little free
 * memory left.
 */
uint64_t tm_pools_spare(uint16_t context, uint64_t asked);
uint64_t tm_pools_host_budget(uint16_t context);
bool tm_pools_is_low(uint16_t context, uint32_t now_ms);

/*
 * [lock] Whether so much memory waits for the device that the host should wait, too, and not take
 * more: it runs ahead, and its frees would fill the device.
 */
bool tm_pools_runs_ahead(uint16_t context);

/*
 * [lock] Whether a request that fits no slab should be mapped from chunks instead of getting a new
 * slab: the device is three quarters full, or chunks are idle. Holes in the slabs are used first.
 */
bool tm_pools_grows_by_chunks(uint16_t context, uint64_t bytes);

/* [lock] Size in bytes of the next slab, for a request of `bytes`; 0: for any request. */
uint64_t tm_pools_slab_step(uint16_t context, uint64_t bytes);

/*
 * [lock] Whether an address lies in memory that a pool mapped from chunks, live or idle. Walks its
 * ranges.
 */
bool tm_pools_stitched(uint64_t address);

/* [lock] Bytes that the driver would report as free in addition if nothing were kept. */
uint64_t tm_pools_idle_bytes(tm_cu_device device);

/* [lock] Drops the pools of a context that has ended. */
void tm_pools_forget(uint16_t context);

/* [lock] Bit mask of the other devices that may access the memory of a context's device. */
uint32_t tm_pools_reached_by(uint16_t context);

/* [lock] Allows or denies device `by` access to the memory of `device`. */
void tm_pools_reach(tm_cu_device device, tm_cu_device by, bool allowed);

/* [lock] Updates the device's free memory by `bytes`: negative if obtained from the driver. */
void tm_pools_changed(tm_cu_device device, int64_t bytes);

/*
 * [lock] Writes a record for each context with pools into the ledger's area; returns their number.
 */
uint32_t tm_pools_write(struct tm_ledger_gpu_pool *area);

/* Totals over all contexts, for the report. */
struct tm_pools_totals {
	uint64_t hits, misses, idle_bytes, host_idle_bytes, slab_bytes, slab_live_bytes,
		vmm_live_bytes;
};
void tm_pools_totals(struct tm_pools_totals *ret);

#endif
