/* SPDX-License-Identifier: MIT */
#include "cuda_hooks/device_mem.h"

#include "cuda_hooks/device_block.h"
#include "cuda_hooks/driver.h"
#include "cuda_hooks/hooks.h"
#include "cuda_hooks/memory.h"
#include "cuda_hooks/note.h"
#include "cuda_hooks/pools.h"
#include "shim/boot.h"
#include "shim/os/clock.h"
#include "shim/os/msg.h"

/* --- a request ------------------------------------------------------------------------------------ */

struct request {
	uint64_t bytes;
	tm_cu_context handle;
	uint32_t now_ms;
	uint16_t context; /* index of the current context; 0: pass the call to the driver */
	uint32_t class;
	struct tm_sites_verdict verdict;
	enum tm_pools_use use;
	bool waiting; /* a block of the size exists, but the device may still be using it */
	bool fresh;   /* the block had to be made: a miss */
	bool squeeze; /* no new slab is available: slabs of other kinds may serve, too */
};

/* [lock] Records the block that the program gets. */
static void note(const struct request *q, tm_cu_ptr at, uint64_t owner)
{
	uint32_t row = tm_note_row(q->context, TM_LEDGER_GPU_DEVICE, q->verdict.tier);
	struct tm_track_block *b = tm_track_place(TM_TRACK_ADDRESS, at);
	if (TM_UNLIKELY(b == NULL))
		return;
	/* Written field by field in place: a struct copy would stall on store forwarding. */
	b->bytes = q->bytes;
	b->owner = owner;
	b->row = row;
	b->born_ms = q->now_ms;
	b->refs = 1;
	b->context = q->context;
	b->kind = TM_LEDGER_GPU_DEVICE;
	b->flags = 0;
	b->site_class = q->class;
	tm_track_count(b);
}

/*
 * Result of a back end: the address and the `owner` of the block's record. Address 0: nothing
 * available.
 */
struct given {
	tm_cu_ptr at;
	uint64_t owner;
};

static const struct given nothing;

TM_INLINE struct given take_whole(struct request *q, struct tm_pools *p)
{
	bool waiting = false;
	tm_cu_ptr at;
	struct tm_pool_whole *w = tm_pool_cache_take(&p->whole, q->bytes, 0, 0,
						     tm_context_at(q->context)->done, &waiting);
	q->waiting |= waiting;
	if (w == NULL)
		return nothing;
	at = w->at;
	tm_cuda_memory_give_record(w);
	return (struct given){at, 0};
}

TM_INLINE struct given take_chunk(struct request *q, struct tm_pools *p)
{
	uint32_t done = tm_context_at(q->context)->done;
	struct tm_chunk *c = tm_pool_slab_again(&p->slab, q->bytes, done);
	bool more = true;
	while (c == NULL && more) {
		more = tm_pool_slab_settle_some(&p->slab, done);
		c = tm_pool_slab_take(&p->slab, q->bytes);
	}
	if (c == NULL && tm_pool_slab_settle(&p->slab, done))
		c = tm_pool_slab_take(&p->slab, q->bytes);
	if (c == NULL && q->squeeze)
		c = tm_pool_slab_squeeze(&p->slab, q->bytes);
	if (c == NULL) {
		q->waiting |= p->slab.wait_bytes >= q->bytes;
		return nothing;
	}
	return (struct given){c->at, (uintptr_t)c + TM_OWNER_CHUNK};
}

static TM_NOINLINE struct given take_range(struct request *q, struct tm_pools *p)
{
	struct tm_context *c = tm_context_at(q->context);
	struct tm_range *r;
	uint64_t created = p->vmm.created;
	r = tm_pool_vmm_again(&p->vmm, q->bytes, c->done);
	/* New chunks could always be made: look for waiting ones first. */
	if (r == NULL && p->vmm.idle_chunks != 0 && tm_device_by_event()) {
		tm_context_record(c, q->handle);
		tm_context_settle(c);
		if (tm_pools_runs_ahead(q->context)) {
			q->waiting = true;
			return nothing;
		}
	}
	if (r == NULL && tm_pool_vmm_take(&p->vmm, q->bytes, c->done, &r) != 0) {
		q->waiting |= p->vmm.idle_chunks != 0;
		return nothing;
	}
	q->fresh = p->vmm.created != created;
	return (struct given){r->at, (uintptr_t)r + TM_OWNER_RANGE};
}

/* [lock] Takes a block from the request's back end, without new memory for slabs. */
TM_INLINE bool take(struct request *q, struct tm_pools *p, tm_cu_ptr *ret)
{
	struct given g = nothing;
	q->waiting = false;
	switch (q->use) {
	case TM_POOLS_WHOLE: g = take_whole(q, p); break;
	case TM_POOLS_SLAB: g = take_chunk(q, p); break;
	case TM_POOLS_VMM: g = take_range(q, p); break;
	case TM_POOLS_NONE: break;
	}
	if (TM_UNLIKELY(g.at == 0))
		return false;
	if (TM_LIKELY(!q->fresh))
		p->hits++;
	else
		p->misses++;
	note(q, g.at, g.owner);
	*ret = g.at;
	return true;
}

/* [lock] Finds out which frees the device has finished with. */
static void look(const struct request *q)
{
	struct tm_context *c = tm_context_at(q->context);
	if (!tm_device_by_event() || c->handle != q->handle)
		return;
	tm_context_record(c, q->handle);
	tm_context_settle(c);
}

/*
 * [lock] Nothing was available but blocks wait for the device: queries whether it has finished, and
 * tries again. A query costs more than a failed attempt, so it comes second. Without context events
 * this finds nothing, and the caller waits or allocates.
 */
static TM_NOINLINE bool look_again(struct request *q, struct tm_pools *p, tm_cu_ptr *ret)
{
	struct tm_context *c = tm_context_at(q->context);
	uint32_t done = c->done;
	look(q);
	return c->done != done && take(q, p, ret);
}

/*
 * Fills in the request; true if the pools may handle it, and then the lock is held. The lock is
 * released in between if a call site has to be looked up in the loader's list.
 */
static bool ask_locked(struct request *q, size_t bytes)
{
	bool sharing = false, fine;
	*q = (struct request){.bytes = bytes};
	if (bytes == 0)
		return false;
	q->handle = tm_context_current();
	if (q->handle == NULL || tm_capture_any())
		return false;
	q->now_ms = (uint32_t)tm_clock_ms();
	if (tm_root.options.cuda_pool == TM_CUDA_POOL_AUTO)
		sharing = tm_pools_sharing(q->now_ms);
	tm_hooks_lock();
	q->context = tm_context_of(q->handle);
	if (q->context == 0 || tm_context_at(q->context)->broken != 0 ||
	    tm_pools_of(q->context) == NULL) {
		q->context = 0;
		tm_hooks_unlock();
		return false;
	}
	q->class = tm_sites_born(tm_hooks_thread.site, bytes, q->now_ms, &q->verdict);
	if (q->verdict.use != TM_SITES_PASS && !q->verdict.vetted) {
		tm_hooks_unlock();
		fine = tm_pools_site_is_fine(tm_hooks_thread.site);
		tm_hooks_lock();
		tm_sites_vet(q->class, fine);
		q->verdict = tm_sites_verdict(q->class, q->now_ms);
	}
	q->use = tm_pools_choose(q->context, bytes, &q->verdict, sharing);
	return true;
}

/* --- from the driver ------------------------------------------------------------------------------ */

/*
 * Memory evicted from a pool, to be given to the driver. Its context cannot end until then
 * (tm_context_leave).
 */
struct evicted {
	tm_cu_ptr at; /* 0: nothing is left to evict */
	uint16_t context;
	uint32_t life;
	bool more; /* chunks were given back as well */
};

/*
 * [lock] Evicts a whole block or an empty slab of a context's pools; 0: there is none. Trims chunks
 * then.
 */
static tm_cu_ptr evict_of(struct tm_context *c, bool *ret_more)
{
	struct tm_pools *p = c->pools;
	struct tm_pool_whole *w;
	uint64_t bytes;
	tm_cu_ptr at;
	if ((w = tm_pool_cache_evict(&p->whole)) != NULL) {
		at = w->at;
		tm_pools_changed(c->device, (int64_t)w->bytes);
		tm_cuda_memory_give_record(w);
		return at;
	}
	tm_pool_slab_settle(&p->slab, c->done);
	if ((at = tm_pool_slab_remove_empty(&p->slab, &bytes)) != 0) {
		tm_pools_changed(c->device, (int64_t)bytes);
		return at;
	}
	if (tm_pool_vmm_trim(&p->vmm, 0, c->done) != 0)
		*ret_more = true;
	return 0;
}

/* [lock] Evicts one from any context of the device. */
static struct evicted evict_one(tm_cu_device device)
{
	struct evicted e = {0, 0, 0, false};
	uint16_t i = 0;
	while (e.at == 0 && (i = tm_context_next_of(device, i)) != 0) {
		struct tm_context *c = tm_context_at(i);
		if (c->pools == NULL || !tm_context_enter(i))
			continue;
		e.at = evict_of(c, &e.more);
		e.context = i;
		e.life = c->life;
		if (e.at == 0)
			tm_context_leave(i, e.life);
	}
	return e;
}

bool tm_device_make_room(void)
{
	tm_cu_context handle = tm_context_current();
	tm_cu_device device;
	uint16_t context;
	bool any = false;
	struct evicted e;
	if (!tm_hooks_pools() || handle == NULL || tm_capture_any())
		return false;
	tm_hooks_lock();
	context = tm_context_of(handle);
	device = tm_context_at(context)->device;
	tm_hooks_unlock();
	if (context == 0 || tm_context_synchronise(context) != TM_CU_SUCCESS)
		return false;
	do {
		tm_hooks_lock();
		e = evict_one(device);
		tm_hooks_unlock();
		any |= e.at != 0 || e.more;
		if (e.at == 0)
			break;
		tm_driver.cuMemFree_v2(e.at);
		tm_hooks_lock();
		tm_context_leave(e.context, e.life);
		tm_hooks_unlock();
	} while (true);
	if (any)
		tm_msg(TM_MSG_CUDA, "device %d is full: what was kept for reuse was given back",
		       device);
	return any;
}

/*
 * Allocates from the driver, after giving back what is kept if the device is full. Returns the
 * driver's result.
 */
static tm_cu_result plain(const struct request *q, tm_cu_ptr *ptr, size_t bytes)
{
	tm_cu_result rc = tm_driver.cuMemAlloc_v2(ptr, bytes);
	if (rc == TM_CU_OUT_OF_MEMORY && tm_device_make_room())
		rc = tm_driver.cuMemAlloc_v2(ptr, bytes);
	if (rc != TM_CU_SUCCESS)
		return rc;
	if (q->context == 0) {
		tm_note_add(TM_TRACK_ADDRESS, *ptr, bytes, TM_LEDGER_GPU_DEVICE);
		return rc;
	}
	tm_hooks_lock();
	if (tm_context_at(q->context)->pools != NULL)
		tm_context_at(q->context)->pools->misses++;
	tm_pools_changed(tm_context_at(q->context)->device, -(int64_t)bytes);
	note(q, *ptr, 0);
	/* A query is cheap next to the driver's allocation, and saves the next hit one. */
	if (q->use != TM_POOLS_NONE)
		look(q);
	tm_hooks_unlock();
	return rc;
}

/*
 * Allocates a new slab, after giving back empty ones, which were too small for this request. Halves
 * the size until it fits.
 */
static tm_cu_ptr new_slab(const struct request *q, uint64_t *ret_bytes)
{
	tm_cu_device device;
	uint64_t step, bytes = 0;
	tm_cu_ptr at = 0;
	do {
		tm_hooks_lock();
		device = tm_context_at(q->context)->device;
		step = tm_pools_slab_step(q->context, q->bytes);
		at = tm_context_at(q->context)->pools == NULL || q->bytes < TM_POOL_SLAB_SMALL_MOST
			     ? 0
			     : tm_pool_slab_remove_empty(&tm_context_at(q->context)->pools->slab,
							 &bytes);
		if (at != 0)
			tm_pools_changed(device, (int64_t)bytes);
		tm_hooks_unlock();
		if (at != 0)
			tm_driver.cuMemFree_v2(at);
	} while (at != 0);
	for (;; step /= 2) {
		tm_cu_result rc = tm_driver.cuMemAlloc_v2(&at, step);
		if (rc == TM_CU_SUCCESS)
			break;
		if (rc != TM_CU_OUT_OF_MEMORY || step / 2 < q->bytes)
			return 0;
	}
	*ret_bytes = step;
	return at;
}

static TM_NOINLINE bool hit(struct request *q, tm_cu_ptr *ptr)
{
	struct tm_pools *p;
	bool taken = false;
	tm_hooks_lock();
	p = tm_pools_of(q->context);
	if (p != NULL && tm_context_at(q->context)->handle == q->handle)
		taken = take(q, p, ptr) || (q->waiting && look_again(q, p, ptr));
	tm_hooks_unlock();
	return taken;
}

/* Adds a slab and takes the block from it. True: the request was served. */
static bool grow_slab(struct request *q, tm_cu_ptr *ret)
{
	uint64_t bytes = 0;
	tm_cu_ptr at = new_slab(q, &bytes);
	struct tm_pools *p;
	bool added = false, taken = false;
	q->squeeze = true;
	if (at == 0)
		return hit(q, ret);
	tm_hooks_lock();
	p = tm_context_at(q->context)->pools;
	if (p != NULL && tm_context_at(q->context)->handle == q->handle) {
		added = tm_pool_slab_add(&p->slab, at, bytes, tm_pool_slab_kind(q->bytes));
		if (added) {
			tm_pools_changed(tm_context_at(q->context)->device, -(int64_t)bytes);
			q->fresh = true;
			taken = take(q, p, ret);
		}
	}
	tm_hooks_unlock();
	if (!added)
		tm_driver.cuMemFree_v2(at);
	return taken;
}

/* --- cuMemAlloc ----------------------------------------------------------------------------------- */

static bool runs_ahead(const struct request *q)
{
	bool ahead;
	tm_hooks_lock();
	ahead = tm_pools_runs_ahead(q->context);
	tm_hooks_unlock();
	return ahead;
}

/*
 * Serves the request from chunks where another slab would waste too much. Not if a library is
 * loaded that may register the memory (sharing).
 */
static bool stitched(struct request *q, tm_cu_ptr *ptr)
{
	bool better, taken = false;
	tm_hooks_lock();
	better = tm_pools_grows_by_chunks(q->context, q->bytes);
	tm_hooks_unlock();
	if (better && !tm_pools_sharing(q->now_ms)) {
		q->use = TM_POOLS_VMM;
		taken = hit(q, ptr);
		q->use = TM_POOLS_SLAB;
	}
	return taken;
}

/* Serves a request that no kept block fits. */
static TM_NOINLINE tm_cu_result miss(struct request *q, tm_cu_ptr *ptr)
{
	while (q->waiting && runs_ahead(q) && tm_context_wait_oldest(q->context))
		if (hit(q, ptr))
			return TM_CU_SUCCESS;
	/* Before CUDA 12.5 there are no context events: only a wait tells. */
	if (q->waiting && tm_device_by_event() && tm_driver.cuCtxRecordEvent == NULL &&
	    tm_context_synchronise(q->context) == TM_CU_SUCCESS && hit(q, ptr))
		return TM_CU_SUCCESS;
	if (q->use == TM_POOLS_SLAB && stitched(q, ptr))
		return TM_CU_SUCCESS;
	if (q->use == TM_POOLS_SLAB && grow_slab(q, ptr))
		return TM_CU_SUCCESS;
	/*
	 * The device is full or no block fits: memory that it is still using may fit once it has
	 * finished.
	 */
	if (q->waiting && q->use != TM_POOLS_WHOLE &&
	    tm_context_synchronise(q->context) == TM_CU_SUCCESS && hit(q, ptr))
		return TM_CU_SUCCESS;
	return plain(q, ptr, q->bytes);
}

/* Not inlined, so that the path without pools saves none of its registers. */
static TM_NOINLINE tm_cu_result pooled(tm_cu_ptr *ptr, size_t bytes)
{
	struct request q;
	struct tm_pools *p;
	bool taken = false;
	if (!ask_locked(&q, bytes))
		return plain(&q, ptr, bytes);
	p = tm_context_at(q.context)->pools;
	if (q.use != TM_POOLS_NONE)
		taken = take(&q, p, ptr) || (q.waiting && look_again(&q, p, ptr));
	tm_hooks_unlock();
	if (TM_LIKELY(taken))
		return TM_CU_SUCCESS;
	return q.use == TM_POOLS_NONE ? plain(&q, ptr, bytes) : miss(&q, ptr);
}

tm_cu_result tm_on_cuMemAlloc_v2(tm_cu_ptr *ptr, size_t bytes)
{
	tm_cu_result rc;
	if (tm_hooks_pools() && ptr != NULL)
		return pooled(ptr, bytes);
	rc = tm_driver.cuMemAlloc_v2(ptr, bytes);
	if (rc == TM_CU_SUCCESS)
		tm_note_add(TM_TRACK_ADDRESS, *ptr, bytes, TM_LEDGER_GPU_DEVICE);
	return rc;
}

tm_cu_result tm_on_cuMemAllocPitch_v2(tm_cu_ptr *ptr, size_t *pitch, size_t width, size_t height,
				      unsigned int element)
{
	/* Never pooled: only the driver knows the pitch. */
	tm_cu_result rc = tm_driver.cuMemAllocPitch_v2(ptr, pitch, width, height, element);
	if (rc == TM_CU_OUT_OF_MEMORY && tm_device_make_room())
		rc = tm_driver.cuMemAllocPitch_v2(ptr, pitch, width, height, element);
	if (rc == TM_CU_SUCCESS)
		tm_note_add(TM_TRACK_ADDRESS, *ptr, *pitch * height, TM_LEDGER_GPU_DEVICE);
	return rc;
}
