/* SPDX-License-Identifier: MIT */
#include "cuda_hooks/device_mem.h"

#include "cuda_hooks/driver.h"
#include "cuda_hooks/hooks.h"
#include "cuda_hooks/memory.h"
#include "cuda_hooks/note.h"
#include "cuda_hooks/pools.h"
#include "shim/boot.h"
#include "shim/os/clock.h"
#include "shim/os/msg.h"

/* A block of a back end names its record there; records are aligned, so that its kind fits below. */
#define OWNER_CHUNK 1u
#define OWNER_RANGE 2u
#define OWNER_MASK 3u

static struct tm_chunk *chunk_of(const struct tm_track_block *b)
{
	return (b->owner & OWNER_MASK) == OWNER_CHUNK ? (struct tm_chunk *)(b->owner - OWNER_CHUNK)
						      : NULL;
}

static struct tm_range *range_of(const struct tm_track_block *b)
{
	return (b->owner & OWNER_MASK) == OWNER_RANGE ? (struct tm_range *)(b->owner - OWNER_RANGE)
						      : NULL;
}

static bool by_event(void)
{
	return tm_root.options.cuda_free_sync == TM_CUDA_FREE_EVENT;
}

/* --- a request ------------------------------------------------------------------------------------ */

struct request {
	uint64_t bytes;
	tm_cu_context handle;
	uint32_t now_ms;
	uint16_t context; /* 0: it is passed through */
	uint32_t class;
	struct tm_sites_verdict verdict;
	enum tm_pools_use use;
	bool waiting; /* a fitting block is there, but the device may still use it */
};

/* [lock] The block that the program gets. */
static void note(const struct request *q, tm_cu_ptr at, uint64_t owner)
{
	struct tm_track_block b = {.bytes = q->bytes,
				   .owner = owner,
				   .born_ms = q->now_ms,
				   .refs = 1,
				   .context = q->context,
				   .site_class = q->class};
	struct tm_track_where where =
		tm_note_where(q->context, TM_LEDGER_GPU_DEVICE, q->verdict.tier);
	tm_track_add(TM_TRACK_ADDRESS, at, &b, &where);
}

static bool take_whole(struct request *q, struct tm_pools *p, tm_cu_ptr *ret)
{
	bool waiting = false;
	struct tm_pool_whole *w = tm_pool_cache_take(&p->whole, q->bytes, 0, 0,
						     tm_context_at(q->context)->done, &waiting);
	q->waiting |= waiting;
	if (w == NULL)
		return false;
	*ret = w->at;
	note(q, w->at, 0);
	tm_cuda_memory_give(w, sizeof(*w));
	return true;
}

static bool take_chunk(struct request *q, struct tm_pools *p, tm_cu_ptr *ret)
{
	struct tm_chunk *c;
	tm_pool_slab_settle(&p->slab, tm_context_at(q->context)->done);
	c = tm_pool_slab_take(&p->slab, q->bytes);
	if (c == NULL) {
		q->waiting |= p->slab.wait_bytes >= q->bytes;
		return false;
	}
	*ret = c->at;
	note(q, c->at, (uintptr_t)c + OWNER_CHUNK);
	return true;
}

static bool take_range(struct request *q, struct tm_pools *p, tm_cu_ptr *ret)
{
	struct tm_range *r;
	if (tm_pool_vmm_take(&p->vmm, q->bytes, tm_context_at(q->context)->done, &r) != 0) {
		q->waiting |= p->vmm.idle_chunks != 0;
		return false;
	}
	*ret = r->at;
	note(q, r->at, (uintptr_t)r + OWNER_RANGE);
	return true;
}

/* [lock] From what is there. */
static bool take(struct request *q, tm_cu_ptr *ret)
{
	struct tm_pools *p = tm_pools_of(q->context);
	bool taken = false;
	q->waiting = false;
	if (p == NULL)
		return false;
	switch (q->use) {
	case TM_POOLS_WHOLE: taken = take_whole(q, p, ret); break;
	case TM_POOLS_SLAB: taken = take_chunk(q, p, ret); break;
	case TM_POOLS_VMM: taken = take_range(q, p, ret); break;
	case TM_POOLS_NONE: break;
	}
	return taken;
}

/*
 * [lock] The same, and what the device has finished meanwhile. Looking is dearer than taking, so it
 * comes second. Without events of contexts the caller waits, or takes a new block.
 */
static bool take_or_look(struct request *q, tm_cu_ptr *ret)
{
	struct tm_context *c = tm_context_at(q->context);
	uint32_t done = c->done;
	if (take(q, ret))
		return true;
	if (!q->waiting || !by_event())
		return false;
	tm_context_record(c);
	tm_context_settle(c);
	return c->done != done && take(q, ret);
}

/* Fills the request; true: a back end may serve it. The lock is taken and given back. */
static bool ask(struct request *q, size_t bytes)
{
	bool sharing = false, fine;
	*q = (struct request){.bytes = bytes, .now_ms = (uint32_t)tm_clock_ms()};
	if (bytes == 0 || !tm_hooks_pools())
		return false;
	q->handle = tm_context_current();
	if (q->handle == NULL || tm_context_captures())
		return false;
	if (tm_root.options.cuda_pool == TM_CUDA_POOL_AUTO)
		sharing = tm_pools_sharing();
	tm_hooks_lock();
	q->context = tm_context_of(q->handle);
	if (q->context == 0 || tm_pools_of(q->context) == NULL) {
		tm_hooks_unlock();
		return false;
	}
	q->class = tm_sites_born(tm_hooks_thread.site, bytes, q->now_ms);
	q->verdict = tm_sites_verdict(q->class, q->now_ms);
	if (q->verdict.use != TM_SITES_PASS && !q->verdict.vetted) {
		tm_hooks_unlock();
		fine = tm_pools_site_is_fine(tm_hooks_thread.site);
		tm_hooks_lock();
		tm_sites_vet(q->class, fine);
		q->verdict = tm_sites_verdict(q->class, q->now_ms);
	}
	q->use = tm_pools_choose(q->context, bytes, &q->verdict, sharing);
	tm_hooks_unlock();
	return true;
}

/* --- from the driver ------------------------------------------------------------------------------ */

static void count(uint16_t context, bool hit)
{
	struct tm_pools *p = tm_context_at(context)->pools;
	if (p == NULL)
		return;
	if (hit)
		p->hits++;
	else
		p->misses++;
}

/* One block that is kept leaves its pool, whichever it is. 0: nothing is left. Lock held. */
static tm_cu_ptr evict_one(tm_cu_device device, bool *ret_more)
{
	uint16_t i = 0;
	*ret_more = false;
	while ((i = tm_context_next_of(device, i)) != 0) {
		struct tm_pools *p = tm_context_at(i)->pools;
		struct tm_pool_whole *w;
		uint64_t bytes;
		tm_cu_ptr at;
		if (p == NULL)
			continue;
		if ((w = tm_pool_cache_evict(&p->whole)) != NULL) {
			at = w->at;
			tm_pools_changed(device, (int64_t)w->bytes);
			tm_cuda_memory_give(w, sizeof(*w));
			return at;
		}
		tm_pool_slab_settle(&p->slab, tm_context_at(i)->done);
		if ((at = tm_pool_slab_remove_empty(&p->slab, &bytes)) != 0) {
			tm_pools_changed(device, (int64_t)bytes);
			return at;
		}
		if (tm_pool_vmm_trim(&p->vmm, 0, tm_context_at(i)->done) != 0)
			*ret_more = true;
	}
	return 0;
}

bool tm_device_make_room(void)
{
	tm_cu_context handle = tm_context_current();
	tm_cu_device device;
	uint16_t context;
	bool any = false, more;
	tm_cu_ptr at;
	if (!tm_hooks_pools() || handle == NULL || tm_context_captures())
		return false;
	tm_hooks_lock();
	context = tm_context_of(handle);
	device = tm_context_at(context)->device;
	tm_hooks_unlock();
	if (context == 0 || tm_context_synchronise(context) != TM_CU_SUCCESS)
		return false;
	do {
		tm_hooks_lock();
		at = evict_one(device, &more);
		tm_hooks_unlock();
		if (at != 0)
			tm_driver.cuMemFree_v2(at);
		any |= at != 0 || more;
	} while (at != 0);
	if (any)
		tm_msg(TM_MSG_CUDA, "device %d is full: what was kept for reuse was given back",
		       device);
	return any;
}

/* A plain call; the driver's answer, whatever could be given up. */
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
	count(q->context, false);
	tm_pools_changed(tm_context_at(q->context)->device, -(int64_t)bytes);
	note(q, *ptr, 0);
	tm_hooks_unlock();
	return rc;
}

/* Slabs that nobody uses go first: they were too small for this request. Halves until it fits. */
static tm_cu_ptr new_slab(const struct request *q, uint64_t *ret_bytes)
{
	tm_cu_device device;
	uint64_t step, bytes = 0;
	tm_cu_ptr at = 0;
	do {
		tm_hooks_lock();
		device = tm_context_at(q->context)->device;
		step = tm_pools_slab_step(q->context, q->bytes);
		at = tm_context_at(q->context)->pools == NULL
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

/* True: the request was served. */
static bool grow_slab(struct request *q, tm_cu_ptr *ret)
{
	uint64_t bytes = 0;
	tm_cu_ptr at = new_slab(q, &bytes);
	struct tm_pools *p;
	bool added = false, taken = false;
	if (at == 0)
		return false;
	tm_hooks_lock();
	p = tm_context_at(q->context)->pools;
	if (p != NULL && tm_context_at(q->context)->handle == q->handle) {
		added = tm_pool_slab_add(&p->slab, at, bytes);
		if (added) {
			tm_pools_changed(tm_context_at(q->context)->device, -(int64_t)bytes);
			count(q->context, false);
			taken = take(q, ret);
		}
	}
	tm_hooks_unlock();
	if (!added)
		tm_driver.cuMemFree_v2(at);
	return taken;
}

/* --- cuMemAlloc ----------------------------------------------------------------------------------- */

static bool hit(struct request *q, tm_cu_ptr *ptr)
{
	bool taken;
	tm_hooks_lock();
	taken = tm_context_at(q->context)->handle == q->handle && take_or_look(q, ptr);
	if (taken)
		count(q->context, true);
	tm_hooks_unlock();
	return taken;
}

tm_cu_result tm_on_cuMemAlloc_v2(tm_cu_ptr *ptr, size_t bytes)
{
	struct request q;
	if (ptr == NULL || !ask(&q, bytes)) {
		if (ptr == NULL)
			q.context = 0;
		return plain(&q, ptr, bytes);
	}
	if (q.use == TM_POOLS_NONE)
		return plain(&q, ptr, bytes);
	if (hit(&q, ptr))
		return TM_CU_SUCCESS;
	/* Before CUDA 12.5 waiting is the only way to know. */
	if (q.waiting && by_event() && tm_driver.cuCtxRecordEvent == NULL &&
	    tm_context_synchronise(q.context) == TM_CU_SUCCESS && hit(&q, ptr))
		return TM_CU_SUCCESS;
	if (q.use == TM_POOLS_SLAB && grow_slab(&q, ptr))
		return TM_CU_SUCCESS;
	/* The device is full, or nothing fits: what it has not finished may fit once it has. */
	if (q.waiting && q.use != TM_POOLS_WHOLE &&
	    tm_context_synchronise(q.context) == TM_CU_SUCCESS && hit(&q, ptr))
		return TM_CU_SUCCESS;
	return plain(&q, ptr, bytes);
}

tm_cu_result tm_on_cuMemAllocPitch_v2(tm_cu_ptr *ptr, size_t *pitch, size_t width, size_t height,
				      unsigned int element)
{
	/* How rows are padded is the driver's to say: never pooled. */
	tm_cu_result rc = tm_driver.cuMemAllocPitch_v2(ptr, pitch, width, height, element);
	if (rc == TM_CU_OUT_OF_MEMORY && tm_device_make_room())
		rc = tm_driver.cuMemAllocPitch_v2(ptr, pitch, width, height, element);
	if (rc == TM_CU_SUCCESS)
		tm_note_add(TM_TRACK_ADDRESS, *ptr, *pitch * height, TM_LEDGER_GPU_DEVICE);
	return rc;
}

/* --- cuMemFree ------------------------------------------------------------------------------------ */

/* How the program frees: the stream-ordered forms say behind what work. */
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

/* Its record is gone already. */
static tm_cu_result pass_on(const struct release *f, const struct tm_track_block *was)
{
	tm_cu_result rc = real_free(f);
	if (rc != TM_CU_SUCCESS)
		tm_note_undo(TM_TRACK_ADDRESS, f->ptr, was);
	return rc;
}

/* [lock] Whether the address lies in memory that no program holds: freed twice, or never a block. */
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

/* [lock] A whole block of the driver is worth keeping. */
static bool is_kept(const struct tm_track_block *b, uint32_t now_ms)
{
	struct tm_sites_verdict v = tm_sites_verdict(b->site_class, now_ms);
	if (tm_context_at(b->context)->pools == NULL || tm_context_captures() ||
	    (b->flags & TM_TRACK_EXPORTED) != 0)
		return false;
	return tm_pools_choose(b->context, b->bytes, &v, true) == TM_POOLS_WHOLE &&
	       b->bytes <= tm_pools_budget(b->context) && !tm_pools_is_low(b->context);
}

/*
 * The device's work on the block: strict waits for it, as the driver's own free does; event leaves it
 * to whoever wants the block next. While a stream is captured nobody may wait.
 */
static tm_cu_result wait_for_work(uint16_t context)
{
	if (by_event() || tm_context_captures())
		return TM_CU_SUCCESS;
	return tm_context_synchronise(context);
}

/* [lock] The stamp of a block whose work was waited for is over already. */
static uint32_t stamp(uint16_t context, uint32_t now_ms)
{
	struct tm_context *c = tm_context_at(context);
	if (by_event() || tm_context_captures())
		return tm_context_stamp(c, now_ms, by_event());
	return c->done;
}

/* [lock] Brings a context's pools down to what they may keep; a block of the driver, or 0. */
static tm_cu_ptr over_budget(uint16_t context)
{
	struct tm_pools *p = tm_context_at(context)->pools;
	uint64_t keep = tm_pools_budget(context), bytes;
	struct tm_pool_whole *w;
	tm_cu_ptr at = 0;
	if (p == NULL || tm_context_captures())
		return 0;
	if (p->whole.idle_bytes > keep && (w = tm_pool_cache_evict(&p->whole)) != NULL) {
		at = w->at;
		tm_pools_changed(tm_context_at(context)->device, (int64_t)w->bytes);
		tm_cuda_memory_give(w, sizeof(*w));
		return at;
	}
	/* One slab more than that: the next request would make it anew. */
	if (tm_pool_slab_empty_bytes(&p->slab) > keep + tm_pools_slab_step(context, 0)) {
		at = tm_pool_slab_remove_empty(&p->slab, &bytes);
		if (at != 0)
			tm_pools_changed(tm_context_at(context)->device, (int64_t)bytes);
		return at;
	}
	if (tm_pool_vmm_idle_bytes(&p->vmm) > keep)
		tm_pool_vmm_trim(&p->vmm, keep, tm_context_at(context)->done);
	return 0;
}

static void trim_to_budget(uint16_t context)
{
	tm_cu_ptr at;
	do {
		tm_hooks_lock();
		at = over_budget(context);
		tm_hooks_unlock();
		if (at != 0)
			tm_driver.cuMemFree_v2(at);
	} while (at != 0);
}

static tm_cu_result keep_whole(const struct release *f, const struct tm_track_block *b,
			       uint32_t life, uint32_t now_ms)
{
	struct tm_context *c = tm_context_at(b->context);
	struct tm_pool_whole *w = NULL;
	/* An error of the device comes out as it would: from the driver's own free. */
	if (wait_for_work(b->context) != TM_CU_SUCCESS)
		return pass_on(f, b);
	tm_hooks_lock();
	if (c->life == life && c->pools != NULL)
		w = tm_cuda_memory_take(sizeof(*w));
	if (w != NULL) {
		w->at = f->ptr;
		w->bytes = b->bytes;
		w->epoch = stamp(b->context, now_ms);
		tm_pool_cache_give(&c->pools->whole, w);
	}
	tm_hooks_unlock();
	if (w == NULL)
		return c->life != life ? TM_CU_SUCCESS : pass_on(f, b);
	trim_to_budget(b->context);
	return TM_CU_SUCCESS;
}

/* A chunk of a slab, or a range. Somebody who knows the range's memory may go on using it: it stays. */
static tm_cu_result give_piece(const struct tm_track_block *b, uint32_t life, uint32_t now_ms)
{
	struct tm_context *c = tm_context_at(b->context);
	tm_cu_result rc = wait_for_work(b->context);
	uint32_t epoch;
	tm_hooks_lock();
	if (c->life != life || c->pools == NULL) {
		tm_hooks_unlock();
		return TM_CU_SUCCESS;
	}
	/* Could not be waited for: over with the next wait that succeeds. */
	epoch = rc == TM_CU_SUCCESS ? stamp(b->context, now_ms)
				    : tm_context_stamp(c, now_ms, false);
	if (chunk_of(b) != NULL)
		tm_pool_slab_give(&c->pools->slab, chunk_of(b), epoch);
	else if ((b->flags & TM_TRACK_EXPORTED) == 0)
		tm_pool_vmm_give(&c->pools->vmm, range_of(b), epoch);
	tm_hooks_unlock();
	if (rc == TM_CU_SUCCESS)
		trim_to_budget(b->context);
	return rc;
}

static tm_cu_result free_block(const struct release *f)
{
	uint32_t now_ms = (uint32_t)tm_clock_ms(), life;
	tm_cu_context handle = tm_context_current();
	struct tm_track_block *found, b;
	bool kept = false;
	tm_hooks_lock();
	found = tm_track_find(TM_TRACK_ADDRESS, f->ptr);
	if (found == NULL) {
		bool wrong = f->ptr != 0 && is_ours_and_idle(f->ptr);
		tm_hooks_unlock();
		return wrong ? TM_CU_INVALID_VALUE : real_free(f);
	}
	b = *found;
	life = tm_context_at(b.context)->life;
	if (b.kind == TM_LEDGER_GPU_DEVICE && b.context != 0) {
		tm_sites_died(b.site_class, b.born_ms, now_ms);
		kept = b.owner == 0 && f->how == FREE_NOW &&
		       tm_context_at(b.context)->handle == handle && is_kept(&b, now_ms);
		if (b.owner == 0 && !kept)
			tm_pools_changed(tm_context_at(b.context)->device, (int64_t)b.bytes);
	}
	/* A block that others opened is closed, not freed; it has its own call for that. */
	if (b.kind == TM_LEDGER_GPU_IPC) {
		tm_hooks_unlock();
		return real_free(f);
	}
	tm_track_remove(TM_TRACK_ADDRESS, f->ptr, &b);
	tm_hooks_unlock();
	if (b.owner != 0)
		return give_piece(&b, life, now_ms);
	return kept ? keep_whole(f, &b, life, now_ms) : pass_on(f, &b);
}

static tm_cu_result free_plain(const struct release *f)
{
	struct tm_track_block was;
	bool known = tm_note_release(TM_TRACK_ADDRESS, f->ptr, &was);
	tm_cu_result rc = real_free(f);
	if (rc != TM_CU_SUCCESS && known)
		tm_note_undo(TM_TRACK_ADDRESS, f->ptr, &was);
	return rc;
}

tm_cu_result tm_on_cuMemFree_v2(tm_cu_ptr ptr)
{
	struct release f = {ptr, NULL, FREE_NOW};
	return tm_hooks_pools() ? free_block(&f) : free_plain(&f);
}

tm_cu_result tm_on_cuMemFreeAsync(tm_cu_ptr ptr, tm_cu_stream stream)
{
	struct release f = {ptr, stream, FREE_ASYNC};
	return tm_hooks_pools() ? free_block(&f) : free_plain(&f);
}

tm_cu_result tm_on_cuMemFreeAsync_ptsz(tm_cu_ptr ptr, tm_cu_stream stream)
{
	struct release f = {ptr, stream, FREE_ASYNC_PTDS};
	return tm_hooks_pools() ? free_block(&f) : free_plain(&f);
}

/* --- what the driver says of it ------------------------------------------------------------------- */

tm_cu_result tm_on_cuMemGetInfo_v2(size_t *available, size_t *total)
{
	tm_cu_result rc = tm_driver.cuMemGetInfo_v2(available, total);
	tm_cu_context handle;
	uint16_t context;
	if (rc != TM_CU_SUCCESS || available == NULL || !tm_hooks_pools())
		return rc;
	/* Kept blocks are free for whoever asks: a failing request gets them. */
	handle = tm_context_current();
	tm_hooks_lock();
	context = tm_context_known(handle);
	if (context != 0)
		*available += tm_pools_idle_bytes(tm_context_at(context)->device);
	tm_hooks_unlock();
	return rc;
}

/* [lock] Nothing that somebody knows by another name may be given to somebody else. */
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

tm_cu_result tm_on_cuIpcGetMemHandle(tm_cu_ipc *handle, tm_cu_ptr ptr)
{
	const struct tm_track_block *b;
	bool part = false, stitched = false;
	if (tm_hooks_pools()) {
		tm_pools_shared();
		tm_hooks_lock();
		b = mark(ptr);
		/* The handle would be of the whole slab, and lead whoever opens it to the slab's start. */
		part = b != NULL && chunk_of(b) != NULL && chunk_of(b)->at != chunk_of(b)->slab->at;
		stitched = b != NULL && range_of(b) != NULL;
		tm_hooks_unlock();
	}
	if (part || stitched)
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
