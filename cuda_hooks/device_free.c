/* SPDX-License-Identifier: MIT */
/*
 * device_free: cuMemFree and its stream-ordered forms, and the driver's queries about device
 * memory. See device_mem.h.
 */
#include <stdatomic.h>

#include "cuda_hooks/device_block.h"
#include "cuda_hooks/device_mem.h"
#include "cuda_hooks/driver.h"
#include "cuda_hooks/hooks.h"
#include "cuda_hooks/memory.h"
#include "cuda_hooks/note.h"
#include "shim/os/clock.h"
#include "shim/os/msg.h"

/* --- cuMemFree ------------------------------------------------------------------------------------ */

/*
 * Which function the program called; the stream-ordered forms free the block after the stream's
 * work.
 */
struct release {
	tm_cu_ptr ptr;
	tm_cu_stream stream;
	enum { FREE_NOW, FREE_ASYNC, FREE_ASYNC_PTDS } how;
};

static tm_cu_result real_free(const struct release *f)
{
	switch (f->how) {
	case FREE_ASYNC: return tm_driver.cuMemFreeAsync(f->ptr, f->stream);
	case FREE_ASYNC_PTDS: return tm_driver.cuMemFreeAsync_ptsz(f->ptr, f->stream);
	case FREE_NOW: break;
	}
	return tm_driver.cuMemFree_v2(f->ptr);
}

/* Frees by the driver; if that fails, restores the block's record, which was dropped before. */
static tm_cu_result pass_on(const struct release *f, const struct tm_track_block *was)
{
	tm_cu_result rc = real_free(f);
	if (rc != TM_CU_SUCCESS)
		tm_note_undo(TM_TRACK_ADDRESS, f->ptr, was);
	return rc;
}

/*
 * [lock] Whether the address lies in a pool's memory that the program does not hold: a double or
 * invalid free.
 */
static bool is_ours_and_idle(tm_cu_ptr ptr)
{
	uint16_t i;
	for (i = 1; i < TM_CONTEXTS; i++) {
		const struct tm_pools *p = tm_context_at(i)->pools;
		if (p != NULL &&
		    (tm_pool_cache_holds(&p->whole, ptr) ||
		     tm_pool_slab_around(&p->slab, ptr) != NULL || tm_pool_vmm_holds(&p->vmm, ptr)))
			return true;
	}
	return false;
}

/* [lock] Whether a whole block of the driver is worth keeping for reuse. */
static bool is_kept(const struct tm_track_block *b, uint32_t now_ms)
{
	struct tm_sites_verdict v = tm_sites_verdict(b->site_class, now_ms);
	if (tm_context_at(b->context)->pools == NULL || tm_context_at(b->context)->broken != 0 ||
	    tm_capture_any() || (b->flags & TM_TRACK_EXPORTED) != 0)
		return false;
	return tm_pools_choose(b->context, b->bytes, &v, true) == TM_POOLS_WHOLE &&
	       b->bytes <= tm_pools_budget(b->context) && !tm_pools_is_low(b->context, now_ms);
}

/* A free in progress: the block's record is dropped, and no pool owns the block yet. */
struct going {
	struct tm_track_block block;
	tm_cu_context handle, current;
	uint32_t life;
	uint32_t now_ms;
	uint32_t epoch; /* epoch closed before the wait; over after it */
	uint32_t reach; /* bit mask of other devices that may use the block */
	bool waits;
	bool others; /* other contexts may use the block */
};

/*
 * [lock] Decides how to treat the device's pending work on the block. In strict mode the free waits
 * for it, as the driver's own does; in event mode the next user of the block waits. While a stream
 * is being captured nothing may wait.
 */
static void going_begin(struct going *g)
{
	struct tm_context *c = tm_context_at(g->block.context);
	g->handle = c->handle;
	g->life = c->life;
	g->reach = tm_pools_reached_by(g->block.context);
	g->others = tm_context_has_others(g->block.context, g->reach);
	/* No event covers the work of several contexts. */
	g->waits = (!tm_device_by_event() || g->others) && !tm_capture_any();
	if (g->waits)
		g->epoch = tm_context_close(c);
}

static tm_cu_result going_wait(const struct going *g)
{
	if (!g->waits)
		return TM_CU_SUCCESS;
	if (g->others)
		tm_context_wait_others(g->block.context, g->reach);
	return tm_context_wait(g->handle, g->current);
}

/* [lock] Epoch to stamp the block with; after a successful wait, one that is over already. */
static uint32_t going_stamp(const struct going *g, tm_cu_result waited)
{
	struct tm_context *c = tm_context_at(g->block.context);
	if (!g->waits || waited != TM_CU_SUCCESS)
		return tm_context_stamp(c, g->current, g->now_ms, tm_device_by_event());
	tm_context_over(c, g->epoch);
	return c->done;
}

/*
 * [lock] Reduces a context's pools to their budget. Returns one block or slab to free by the
 * driver; 0: none.
 */
static tm_cu_ptr over_budget(uint16_t context)
{
	struct tm_pools *p = tm_context_at(context)->pools;
	struct tm_pool_whole *w;
	uint64_t keep, spare, bytes;
	tm_cu_ptr at = 0;
	if (p == NULL ||
	    (p->whole.idle_bytes <= p->keep_least && p->slab.empty_bytes <= p->keep_least &&
	     tm_pool_vmm_idle_bytes(&p->vmm) <= p->keep_least))
		return 0;
	if (tm_capture_any())
		return 0;
	keep = tm_pools_budget(context);
	if (p->whole.idle_bytes > keep && (w = tm_pool_cache_evict(&p->whole)) != NULL) {
		at = w->at;
		tm_pools_changed(tm_context_at(context)->device, (int64_t)w->bytes);
		tm_cuda_memory_give_record(w);
		return at;
	}
	/* One empty slab above the budget may stay: the next request would make it anew. */
	spare = tm_pools_spare(context, p->slab.asked);
	if (p->slab.empty_bytes > keep + spare &&
	    p->slab.empty_bytes > keep + tm_pools_slab_step(context, 0)) {
		at = tm_pool_slab_remove_empty(&p->slab, &bytes);
		if (at != 0)
			tm_pools_changed(tm_context_at(context)->device, (int64_t)bytes);
		return at;
	}
	keep += tm_pools_spare(context, p->vmm.asked * p->vmm.chunk_bytes);
	if (tm_pool_vmm_idle_bytes(&p->vmm) > keep)
		tm_pool_vmm_trim(&p->vmm, keep, tm_context_at(context)->done);
	return 0;
}

static void free_those(uint16_t context, tm_cu_ptr at)
{
	while (at != 0) {
		tm_driver.cuMemFree_v2(at);
		tm_hooks_lock();
		at = over_budget(context);
		tm_hooks_unlock();
	}
}

static tm_cu_result keep_whole(const struct release *f, const struct going *g)
{
	const struct tm_track_block *b = &g->block;
	struct tm_context *c = tm_context_at(b->context);
	struct tm_pool_whole *w = NULL;
	tm_cu_ptr over = 0;
	tm_cu_result rc;
	/* If the wait fails, the driver's own free is called and reports the error. */
	rc = going_wait(g);
	tm_hooks_lock();
	if (c->life == g->life)
		tm_context_heard(c, rc);
	if (rc == TM_CU_SUCCESS && c->life == g->life && c->pools != NULL)
		w = tm_cuda_memory_take_record();
	if (w != NULL) {
		*w = (struct tm_pool_whole){
			.at = f->ptr, .bytes = b->bytes, .epoch = going_stamp(g, TM_CU_SUCCESS)};
		tm_pool_cache_give(&c->pools->whole, w);
		over = over_budget(b->context);
	}
	tm_hooks_unlock();
	if (w == NULL)
		return c->life != g->life ? TM_CU_SUCCESS : pass_on(f, b);
	free_those(b->context, over);
	return TM_CU_SUCCESS;
}

/*
 * Gives a chunk or a range back to its pool. A range whose identity the program knows is not given
 * back, since its memory may still be in use.
 */
static tm_cu_result give_piece(const struct going *g)
{
	const struct tm_track_block *b = &g->block;
	struct tm_context *c = tm_context_at(b->context);
	tm_cu_result rc = going_wait(g);
	tm_cu_ptr over = 0;
	uint32_t epoch;
	tm_hooks_lock();
	if (c->life == g->life && c->pools != NULL) {
		tm_context_heard(c, rc);
		epoch = going_stamp(g, rc);
		if (tm_device_chunk(b) != NULL) {
			tm_pool_slab_give(&c->pools->slab, tm_device_chunk(b), epoch);
			tm_pool_slab_settle_some(&c->pools->slab, c->done);
		} else if ((b->flags & TM_TRACK_EXPORTED) == 0)
			tm_pool_vmm_give(&c->pools->vmm, tm_device_range(b), epoch);
		if (c->broken != 0)
			rc = c->broken;
		else
			over = over_budget(b->context);
	}
	tm_hooks_unlock();
	free_those(b->context, over);
	return rc;
}

/* How a block that was found is freed. */
enum fate { FATE_DRIVER, FATE_WHOLE, FATE_PIECE };

static enum fate fate_of(const struct release *f, const struct going *g, tm_cu_context current)
{
	const struct tm_track_block *b = &g->block;
	if (b->kind != TM_LEDGER_GPU_DEVICE || b->context == 0)
		return FATE_DRIVER;
	tm_sites_died(b->site_class, b->born_ms, g->now_ms);
	if (b->owner != 0)
		return FATE_PIECE;
	if (f->how == FREE_NOW && tm_context_at(b->context)->handle == current &&
	    is_kept(b, g->now_ms))
		return FATE_WHOLE;
	tm_pools_changed(tm_context_at(b->context)->device, (int64_t)b->bytes);
	return FATE_DRIVER;
}

/*
 * [lock] The error that the driver would return if the block were its own: no context is current,
 * the stream is invalid, or the stream is being captured, where only blocks of its graph can be
 * freed.
 */
static tm_cu_result refusal(const struct release *f, tm_cu_context current)
{
	tm_cu_capture_status status = 0;
	tm_cu_result rc = TM_CU_SUCCESS;
	if (f->how == FREE_NOW)
		return tm_context_refusal(current);
	if (f->how == FREE_ASYNC_PTDS && tm_driver.cuStreamIsCapturing_ptsz != NULL)
		rc = tm_driver.cuStreamIsCapturing_ptsz(f->stream, &status);
	else if (tm_driver.cuStreamIsCapturing != NULL)
		rc = tm_driver.cuStreamIsCapturing(f->stream, &status);
	return rc == TM_CU_SUCCESS && status != 0 ? TM_CU_INVALID_VALUE : rc;
}

static tm_cu_result free_block(const struct release *f)
{
	tm_cu_context current = tm_context_current();
	struct tm_track_block *found;
	enum fate fate;
	struct going g;
	g.now_ms = (uint32_t)tm_clock_ms();
	g.current = current;
	tm_hooks_lock();
	found = tm_track_find(TM_TRACK_ADDRESS, f->ptr);
	/* Memory lent by another process is closed by another call, not freed. */
	if (found == NULL || found->kind == TM_LEDGER_GPU_IPC) {
		bool wrong = found == NULL && f->ptr != 0 && is_ours_and_idle(f->ptr);
		tm_cu_result rc;
		tm_hooks_unlock();
		if (!wrong)
			return real_free(f);
		rc = refusal(f, current);
		return rc != TM_CU_SUCCESS ? rc : TM_CU_INVALID_VALUE;
	}
	if (found->owner != 0 && found->kind == TM_LEDGER_GPU_DEVICE) {
		tm_cu_result rc = refusal(f, current);
		if (TM_UNLIKELY(rc != TM_CU_SUCCESS)) {
			tm_hooks_unlock();
			return rc;
		}
	}
	g.block = *found;
	tm_track_drop(found);
	fate = fate_of(f, &g, current);
	if (fate != FATE_DRIVER)
		going_begin(&g);
	tm_hooks_unlock();
	switch (fate) {
	case FATE_WHOLE: return keep_whole(f, &g);
	case FATE_PIECE: return give_piece(&g);
	case FATE_DRIVER: break;
	}
	return pass_on(f, &g.block);
}

/* Without pools the driver's result decides. */
#define FREE_PLAIN(ptr, call)                                                                      \
	do {                                                                                       \
		struct tm_track_block was;                                                         \
		bool known = tm_note_release(TM_TRACK_ADDRESS, ptr, &was);                         \
		tm_cu_result rc = (call);                                                          \
		if (TM_UNLIKELY(rc != TM_CU_SUCCESS) && known)                                     \
			tm_note_undo(TM_TRACK_ADDRESS, ptr, &was);                                 \
		return rc;                                                                         \
	} while (0)

tm_cu_result tm_on_cuMemFree_v2(tm_cu_ptr ptr)
{
	if (tm_hooks_pools())
		return free_block(&(struct release){ptr, NULL, FREE_NOW});
	FREE_PLAIN(ptr, tm_driver.cuMemFree_v2(ptr));
}

tm_cu_result tm_on_cuMemFreeAsync(tm_cu_ptr ptr, tm_cu_stream stream)
{
	if (tm_hooks_pools())
		return free_block(&(struct release){ptr, stream, FREE_ASYNC});
	FREE_PLAIN(ptr, tm_driver.cuMemFreeAsync(ptr, stream));
}

tm_cu_result tm_on_cuMemFreeAsync_ptsz(tm_cu_ptr ptr, tm_cu_stream stream)
{
	if (tm_hooks_pools())
		return free_block(&(struct release){ptr, stream, FREE_ASYNC_PTDS});
	FREE_PLAIN(ptr, tm_driver.cuMemFreeAsync_ptsz(ptr, stream));
}

/* --- what the driver says of it ------------------------------------------------------------------- */

tm_cu_result tm_on_cuMemGetInfo_v2(size_t *available, size_t *total)
{
	tm_cu_result rc = tm_driver.cuMemGetInfo_v2(available, total);
	tm_cu_context handle;
	uint16_t context;
	if (rc != TM_CU_SUCCESS || available == NULL || !tm_hooks_pools())
		return rc;
	/* Kept blocks count as free: a request that would fail gets their memory. */
	handle = tm_context_current();
	tm_hooks_lock();
	context = tm_context_known(handle);
	if (context != 0)
		*available += tm_pools_idle_bytes(tm_context_at(context)->device);
	tm_hooks_unlock();
	return rc;
}

/*
 * [lock] Marks the block that holds an address: memory known by a handle or id must not be reused
 * for another block.
 */
static struct tm_track_block *mark(tm_cu_ptr ptr)
{
	uint64_t start;
	struct tm_track_block *b = tm_track_find(TM_TRACK_ADDRESS, ptr);
	if (b == NULL)
		b = tm_track_around(ptr, &start);
	if (b == NULL || b->kind != TM_LEDGER_GPU_DEVICE)
		return NULL;
	b->flags |= TM_TRACK_EXPORTED;
	tm_sites_demote(b->site_class);
	return b;
}

void tm_device_looked_at(tm_cu_ptr ptr)
{
	if (!tm_hooks_pools())
		return;
	tm_hooks_lock();
	mark(ptr);
	tm_hooks_unlock();
}

bool tm_device_is_stitched(tm_cu_ptr ptr)
{
	bool stitched;
	if (!tm_hooks_pools())
		return false;
	tm_hooks_lock();
	stitched = tm_pools_stitched(ptr);
	tm_hooks_unlock();
	return stitched;
}

tm_cu_result tm_on_cuIpcGetMemHandle(tm_cu_ipc *handle, tm_cu_ptr ptr)
{
	static _Atomic uint32_t refused; /* 1: the warning was printed */
	const struct tm_track_block *b;
	bool part = false, stitched = false;
	if (tm_hooks_pools()) {
		tm_pools_shared();
		tm_hooks_lock();
		b = mark(ptr);
		/*
		 * The handle would cover the whole slab, including blocks of others, now and later.
		 */
		part = b != NULL && tm_device_chunk(b) != NULL;
		stitched = b != NULL && tm_device_range(b) != NULL;
		tm_hooks_unlock();
	}
	if ((part || stitched) && tm_context_refusal(tm_context_current()) != TM_CU_SUCCESS)
		part = stitched = false;
	if ((part || stitched) && atomic_exchange(&refused, 1) == 0)
		tm_msg(TM_MSG_WARN,
		       "a block of a CUDA pool cannot be shared by cuIpcGetMemHandle, use "
		       "TIERMALLOC_CUDA_POOL=cache");
	return part ? TM_CU_INVALID_VALUE : tm_driver.cuIpcGetMemHandle(handle, ptr);
}

/* --- contexts ------------------------------------------------------------------------------------- */

void tm_device_forget_context(uint16_t index)
{
	tm_track_forget_context(index, NULL);
	tm_pools_forget(index);
	tm_capture_context_gone(tm_context_at(index)->handle);
	tm_context_forget(index);
}

void tm_device_peer(tm_cu_context peer, enum tm_device_peer change)
{
	tm_cu_device mine = -1, theirs = -1;
	tm_cu_context popped;
	if (!tm_hooks_pools() || tm_driver.cuCtxGetDevice == NULL ||
	    tm_driver.cuCtxPushCurrent_v2 == NULL || tm_driver.cuCtxPopCurrent_v2 == NULL ||
	    tm_driver.cuCtxGetDevice(&mine) != TM_CU_SUCCESS ||
	    tm_driver.cuCtxPushCurrent_v2(peer) != TM_CU_SUCCESS)
		return;
	if (tm_driver.cuCtxGetDevice(&theirs) != TM_CU_SUCCESS)
		theirs = -1;
	tm_driver.cuCtxPopCurrent_v2(&popped);
	tm_hooks_lock();
	tm_pools_reach(theirs, mine, change == TM_DEVICE_PEER_ADDED);
	tm_hooks_unlock();
}
