/* SPDX-License-Identifier: MIT */
/*
 * host_mem: pinned host memory of cuMemAllocHost and cuMemHostAlloc.
 *
 * Pinning costs a walk over the pages, and unpinning waits for the device, so freed blocks are
 * kept. A block is kept whole and reused for requests with the same flags that are at most an
 * eighth smaller, or need as many pages. Sizes are never rounded up: the driver refuses copies that
 * reach past the size it was asked for. A block is neither reused nor given back to the driver
 * before the transfers that were in progress at its free have ended (see context.h). Memory that
 * the program pins itself is not kept.
 */
#include "cuda_hooks/driver.h"
#include "cuda_hooks/hooks.h"
#include "cuda_hooks/memory.h"
#include "cuda_hooks/note.h"
#include "cuda_hooks/pools.h"
#include "shim/base/bits.h"
#include "shim/boot.h"
#include "shim/os/clock.h"

/* Kind of blocks of cuMemAllocHost, which takes no flags; other blocks have their flags as kind. */
#define KIND_PLAIN UINT32_MAX

/* The driver pins whole pages. */
#define GRAIN 4096u

/* Value of `owner` in a block's record: the size that the driver was asked for, and the kind. */
static uint64_t owner_of(uint64_t bytes, uint32_t kind)
{
	return bytes << 8 | (kind == KIND_PLAIN ? 0xff : kind & 0x7f);
}

static uint32_t kind_of(uint64_t owner)
{
	return (owner & 0xff) == 0xff ? KIND_PLAIN : (uint32_t)(owner & 0x7f);
}

static void note(uint16_t context, void *ptr, uint64_t bytes, uint64_t owner)
{
	struct tm_track_block b = {.bytes = bytes,
				   .owner = owner,
				   .born_ms = (uint32_t)tm_clock_ms(),
				   .refs = 1,
				   .context = context,
				   .kind = TM_LEDGER_GPU_PINNED};
	b.row = tm_note_row(context, TM_LEDGER_GPU_PINNED, TM_TIER_ALL);
	tm_track_add(TM_TRACK_ADDRESS, (uintptr_t)ptr, &b);
}

static bool pools_host(size_t bytes)
{
	return tm_hooks_pools() && bytes != 0 &&
	       tm_root.options.cuda_host_bytes != TM_OPTION_NONE && !tm_capture_any();
}

/* [lock] Takes a kept block. */
static bool take(uint16_t context, void **ptr, size_t bytes, uint32_t kind)
{
	struct tm_pools *p = tm_pools_of(context);
	struct tm_context *c = tm_context_at(context);
	uint64_t slack = tm_bits_max(bytes / 8, tm_bits_align_up(bytes, GRAIN) - bytes);
	struct tm_pool_whole *w;
	bool waiting = false;
	if (p == NULL)
		return false;
	w = tm_pool_cache_take(&p->host, bytes, slack, kind, c->done, &waiting);
	if (w == NULL && waiting && tm_root.options.cuda_free_sync == TM_CUDA_FREE_EVENT) {
		tm_context_record(c, tm_context_current());
		tm_context_settle(c);
		w = tm_pool_cache_take(&p->host, bytes, slack, kind, c->done, NULL);
	}
	if (w == NULL)
		return false;
	*ptr = (void *)(uintptr_t)w->at;
	note(context, *ptr, bytes, owner_of(w->bytes, kind));
	tm_cuda_memory_give_record(w);
	return true;
}

static tm_cu_result real_alloc(void **ptr, size_t bytes, unsigned int flags, uint32_t kind)
{
	return kind == KIND_PLAIN ? tm_driver.cuMemAllocHost_v2(ptr, bytes)
				  : tm_driver.cuMemHostAlloc(ptr, bytes, flags);
}

/*
 * [lock] Evicts the oldest kept block while more than `keep` bytes are idle. NULL: nothing more to
 * evict.
 */
static void *evict(uint16_t context, uint64_t keep)
{
	struct tm_pools *p = tm_context_at(context)->pools;
	struct tm_pool_whole *w;
	void *at = NULL;
	if (p != NULL && p->host.idle_bytes > keep && !tm_capture_any() &&
	    (w = tm_pool_cache_evict(&p->host)) != NULL) {
		at = (void *)(uintptr_t)w->at;
		tm_cuda_memory_give_record(w);
	}
	return at;
}

static bool trim(uint16_t context, uint64_t keep)
{
	bool any = false;
	void *at;
	do {
		tm_hooks_lock();
		at = evict(context, keep);
		tm_hooks_unlock();
		/* The driver's own free waits for pending transfers. */
		if (at != NULL)
			tm_driver.cuMemFreeHost(at);
		any |= at != NULL;
	} while (at != NULL);
	return any;
}

static tm_cu_result alloc(void **ptr, size_t bytes, unsigned int flags, uint32_t kind)
{
	tm_cu_context handle = tm_context_current();
	uint16_t context = 0;
	tm_cu_result rc;
	bool taken = false;
	if (ptr != NULL && handle != NULL && pools_host(bytes)) {
		tm_hooks_lock();
		context = tm_context_of(handle);
		taken = context != 0 && take(context, ptr, bytes, kind);
		tm_hooks_unlock();
	}
	if (taken)
		return TM_CU_SUCCESS;
	rc = real_alloc(ptr, bytes, flags, kind);
	if (rc == TM_CU_OUT_OF_MEMORY && context != 0 && trim(context, 0))
		rc = real_alloc(ptr, bytes, flags, kind);
	if (rc != TM_CU_SUCCESS)
		return rc;
	if (context == 0) {
		tm_note_add(TM_TRACK_ADDRESS, (uintptr_t)*ptr, bytes, TM_LEDGER_GPU_PINNED);
		return rc;
	}
	tm_hooks_lock();
	note(context, *ptr, bytes, owner_of(bytes, kind));
	tm_hooks_unlock();
	return rc;
}

tm_cu_result tm_on_cuMemAllocHost_v2(void **ptr, size_t bytes)
{
	return alloc(ptr, bytes, 0, KIND_PLAIN);
}

tm_cu_result tm_on_cuMemHostAlloc(void **ptr, size_t bytes, unsigned int flags)
{
	/* Blocks with flags unknown to us may differ in ways unknown to us: never pooled. */
	if (flags > 0x7f) {
		tm_cu_result rc = tm_driver.cuMemHostAlloc(ptr, bytes, flags);
		if (rc == TM_CU_SUCCESS)
			tm_note_add(TM_TRACK_ADDRESS, (uintptr_t)*ptr, bytes, TM_LEDGER_GPU_PINNED);
		return rc;
	}
	return alloc(ptr, bytes, flags, flags);
}

/* --- cuMemFreeHost --------------------------------------------------------------------------------- */

static tm_cu_result pass_on(void *ptr, const struct tm_track_block *was)
{
	tm_cu_result rc = tm_driver.cuMemFreeHost(ptr);
	if (rc != TM_CU_SUCCESS)
		tm_note_undo(TM_TRACK_ADDRESS, (uintptr_t)ptr, was);
	return rc;
}

static uint32_t stamp(struct tm_context *c)
{
	return tm_context_stamp(c, tm_context_current(), (uint32_t)tm_clock_ms(), true);
}

static tm_cu_result keep(void *ptr, const struct tm_track_block *b, uint32_t life)
{
	struct tm_context *c = tm_context_at(b->context);
	bool by_event = tm_root.options.cuda_free_sync == TM_CUDA_FREE_EVENT, others;
	struct tm_pool_whole *w = NULL;
	/* Every device can access pinned memory. */
	tm_hooks_lock();
	others = tm_context_has_others(b->context, UINT32_MAX);
	tm_hooks_unlock();
	if (others) {
		by_event = false;
		tm_context_wait_others(b->context, UINT32_MAX);
	}
	if (!by_event && tm_context_synchronise(b->context) != TM_CU_SUCCESS)
		return pass_on(ptr, b);
	tm_hooks_lock();
	if (c->life == life && c->pools != NULL)
		w = tm_cuda_memory_take_record();
	if (w != NULL) {
		*w = (struct tm_pool_whole){
			.at = (uintptr_t)ptr, .bytes = b->owner >> 8, .kind = kind_of(b->owner)};
		w->epoch = by_event ? stamp(c) : c->done;
		tm_pool_cache_give(&c->pools->host, w);
	}
	tm_hooks_unlock();
	if (w == NULL)
		return pass_on(ptr, b);
	trim(b->context, tm_pools_host_budget(b->context));
	return TM_CU_SUCCESS;
}

/* [lock] Whether a block is idle in a pool: a double free. */
static bool is_idle(const void *ptr)
{
	uint16_t i;
	for (i = 1; i < TM_CONTEXTS; i++) {
		const struct tm_pools *p = tm_context_at(i)->pools;
		if (p != NULL && tm_pool_cache_holds(&p->host, (uintptr_t)ptr))
			return true;
	}
	return false;
}

tm_cu_result tm_on_cuMemFreeHost(void *ptr)
{
	tm_cu_context handle = tm_context_current();
	struct tm_track_block b;
	tm_cu_result rc;
	uint32_t life = 0;
	bool kept, wrong;
	tm_hooks_lock();
	if (!tm_track_remove(TM_TRACK_ADDRESS, (uintptr_t)ptr, &b)) {
		wrong = ptr != NULL && tm_hooks_pools() && is_idle(ptr);
		tm_hooks_unlock();
		if (!wrong)
			return tm_driver.cuMemFreeHost(ptr);
		rc = tm_context_refusal(handle);
		return rc != TM_CU_SUCCESS ? rc : TM_CU_INVALID_VALUE;
	}
	life = tm_context_at(b.context)->life;
	kept = b.owner != 0 && b.kind == TM_LEDGER_GPU_PINNED && handle != NULL &&
	       handle == tm_context_at(b.context)->handle && pools_host(b.bytes) &&
	       (b.owner >> 8) <= tm_pools_host_budget(b.context);
	tm_hooks_unlock();
	return kept ? keep(ptr, &b, life) : pass_on(ptr, &b);
}
