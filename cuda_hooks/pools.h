/* SPDX-License-Identifier: MIT */
/*
 * pools: the back ends of each context, what they may keep, and which one serves a request. Knows the
 * devices: their memory, whether they map chunks, who may reach them.
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
	uint64_t keep_least; /* bytes that may lie idle whatever is live */
	uint64_t hits, misses;
	struct tm_pool_vmm vmm;
	struct tm_pool_cache whole;
	struct tm_pool_cache host;
	struct tm_pool_slab slab;
};

enum tm_pools_use { TM_POOLS_NONE, TM_POOLS_WHOLE, TM_POOLS_SLAB, TM_POOLS_VMM };

struct tm_pools *tm_pools_make(uint16_t context); /* where there are none yet */

/* [lock] NULL: no memory for them. */
TM_INLINE struct tm_pools *tm_pools_of(uint16_t context)
{
	struct tm_pools *p = tm_context_at(context)->pools;
	return TM_LIKELY(p != NULL) ? p : tm_pools_make(context);
}

/* Whether some library that registers or shares device memory is loaded. No lock may be held. */
bool tm_pools_sharing(uint32_t now_ms);
/* Whether a call site lies in one of those. No lock may be held. */
bool tm_pools_site_is_fine(uintptr_t site);
/* A handle for another process was made: back ends that cut memory are off from now on. */
void tm_pools_shared(void);

/* [lock] Which back end this request gets. */
enum tm_pools_use tm_pools_choose(uint16_t context, uint64_t bytes,
				  const struct tm_sites_verdict *v, bool sharing);

/* [lock] Bytes that may lie idle on a context's device, and whether so much is left besides. */
uint64_t tm_pools_budget(uint16_t context);
/*
 * Besides that, room for one more block of the last request's size: the next one would make it anew, and on a
 * small device it alone may exceed the budget. No more than half of the device: others are there, too.
 */
uint64_t tm_pools_spare(uint16_t context, uint64_t asked);
uint64_t tm_pools_host_budget(uint16_t context);
bool tm_pools_is_low(uint16_t context, uint32_t now_ms);

/*
 * [lock] So much memory waits for the device that the host had better wait, too, instead of taking more:
 * it runs ahead, and what it frees would fill the device.
 */
bool tm_pools_runs_ahead(uint16_t context);

/*
 * [lock] Whether a request that fits no slab had better be stitched from chunks than get a new slab: the
 * device is three quarters full, or chunks lie idle. What holes the slabs have is used before.
 */
bool tm_pools_grows_by_chunks(uint16_t context, uint64_t bytes);

/* [lock] How large the next slab shall be, for a request of that size; 0: any. */
uint64_t tm_pools_slab_step(uint16_t context, uint64_t bytes);

/* [lock] Whether an address lies in memory that a pool stitched, used or idle. Walks its ranges. */
bool tm_pools_stitched(uint64_t address);

/* [lock] What the driver would count as free if nothing were kept. */
uint64_t tm_pools_idle_bytes(tm_cu_device device);

/* [lock] All of a context, which is gone. */
void tm_pools_forget(uint16_t context);

/* [lock] Devices that may use the memory of a context's device, besides itself: a bit for each. */
uint32_t tm_pools_reached_by(uint16_t context);

/* [lock] Devices that may use the memory of `device`. */
void tm_pools_reach(tm_cu_device device, tm_cu_device by, bool allowed);

/* [lock] Something was obtained from, or given back to, the driver. */
void tm_pools_changed(tm_cu_device device, int64_t bytes);

/* [lock] A record for each context that has pools, in the ledger's area; their number. */
uint32_t tm_pools_write(struct tm_ledger_gpu_pool *area);

/* Figures for the report, summed over contexts. */
struct tm_pools_totals {
	uint64_t hits, misses, idle_bytes, host_idle_bytes, slab_bytes, slab_live_bytes,
		vmm_live_bytes;
};
void tm_pools_totals(struct tm_pools_totals *ret);

#endif
