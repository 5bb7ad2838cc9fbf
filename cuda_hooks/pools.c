/* SPDX-License-Identifier: MIT */
#include "cuda_hooks/pools.h"

#include <stdatomic.h>

#include "cuda_hooks/driver.h"
#include "cuda_hooks/memory.h"
#include "cuda_hooks/track.h"
#include "shim/base/bits.h"
#include "shim/boot.h"
#include "shim/elf.h"
#include "shim/os/clock.h"

#define MIB ((uint64_t)1 << 20)
#define CHUNK_BYTES (2 * MIB)
#define SLAB_MOST (2048 * MIB)
#define SLAB_MOST_AUTO (512 * MIB) /* few blocks use slabs where call sites must earn them */
#define SLAB_LEAST (64 * MIB)
#define EXACT_LEAST (256 * MIB)
#define VMM_LEAST MIB /* smaller blocks would waste half a chunk or more */
#define VMM_LARGE_LEAST (128 * MIB)
#define LOOK_MS 100u

/* [lock] What is known about a device. */
static struct device {
	bool known;
	bool vmm;
	uint32_t reach; /* bit n: device n may access its memory */
	uint32_t looked_ms;
	uint64_t total, available; /* bytes; available: as last queried, updated by our own calls */
	tm_cu_prop prop;           /* properties of new chunks */
} devices[TM_TRACK_DEVICES];

static _Atomic uint32_t shared; /* 1: a handle for another process was made */

static struct device *device_of(uint16_t context)
{
	tm_cu_device d = tm_context_at(context)->device;
	return &devices[d < 0 || d >= (int)TM_TRACK_DEVICES ? TM_TRACK_DEVICES - 1 : (unsigned)d];
}

/* --- devices -------------------------------------------------------------------------------------- */

static bool attribute(tm_cu_device device, tm_cu_device_attribute which)
{
	int value = 0;
	return tm_driver.cuDeviceGetAttribute != NULL &&
	       tm_driver.cuDeviceGetAttribute(&value, which, device) == TM_CU_SUCCESS && value != 0;
}

static bool has_vmm_calls(void)
{
	return tm_driver.cuMemCreate != NULL && tm_driver.cuMemRelease != NULL &&
	       tm_driver.cuMemMap != NULL && tm_driver.cuMemUnmap != NULL &&
	       tm_driver.cuMemSetAccess != NULL && tm_driver.cuMemAddressReserve != NULL &&
	       tm_driver.cuMemAddressFree != NULL;
}

static void learn(struct device *d, tm_cu_device number)
{
	size_t grain = 0;
	d->known = true;
	d->prop = (tm_cu_prop){.type = TM_CU_ALLOCATION_PINNED,
			       .location = {TM_CU_LOCATION_DEVICE, number}};
	if (!has_vmm_calls() || !attribute(number, TM_CU_DEVICE_VMM))
		return;
	if (attribute(number, TM_CU_DEVICE_POSIX_FD))
		d->prop.requestedHandleTypes = TM_CU_HANDLE_POSIX_FD;
	d->prop.allocFlags.gpuDirectRDMACapable = attribute(number, TM_CU_DEVICE_RDMA_VMM);
	d->vmm = tm_driver.cuMemGetAllocationGranularity != NULL &&
		 tm_driver.cuMemGetAllocationGranularity(&grain, &d->prop, 0) == TM_CU_SUCCESS &&
		 grain != 0 && CHUNK_BYTES % grain == 0;
}

/* Queries the device's free memory at most every LOOK_MS. The context must be current. */
static void look(struct device *d, uint32_t now)
{
	size_t available, total;
	if ((d->total != 0 && now - d->looked_ms < LOOK_MS) || tm_driver.cuMemGetInfo_v2 == NULL ||
	    tm_driver.cuMemGetInfo_v2(&available, &total) != TM_CU_SUCCESS)
		return;
	d->looked_ms = now;
	d->available = available;
	d->total = total;
}

void tm_pools_changed(tm_cu_device device, int64_t bytes)
{
	if (device >= 0 && device < (int)TM_TRACK_DEVICES)
		devices[device].available += (uint64_t)bytes;
}

void tm_pools_reach(tm_cu_device device, tm_cu_device by, bool allowed)
{
	tm_cu_access none = {{TM_CU_LOCATION_DEVICE, by}, 0};
	uint16_t i = 0;
	if (device < 0 || device >= (int)TM_TRACK_DEVICES || by < 0 || by >= 32)
		return;
	if (allowed)
		devices[device].reach |= UINT32_C(1) << by;
	else
		devices[device].reach &= ~(UINT32_C(1) << by);
	while ((i = tm_context_next_of(device, i)) != 0) {
		struct tm_pools *p = tm_context_at(i)->pools;
		struct tm_list_node *n;
		if (p == NULL)
			continue;
		if (allowed) {
			tm_pool_vmm_grant_all(&p->vmm);
			continue;
		}
		for (n = p->vmm.live.first; n != NULL; n = n->next) {
			struct tm_range *r = TM_CONTAINER_OF(n, struct tm_range, node);
			tm_driver.cuMemSetAccess(r->at, r->chunks * CHUNK_BYTES, &none, 1);
		}
		/* Idle ranges are released; new mappings get the right access. */
		tm_pool_vmm_trim(&p->vmm, 0, tm_context_at(i)->done);
	}
}

uint32_t tm_pools_reached_by(uint16_t context)
{
	return device_of(context)->reach;
}

/* Bytes that may be idle even if little is live. */
static uint64_t least_budget(const struct device *d)
{
	return tm_root.options.cuda_keep_bytes != TM_OPTION_AUTO
		       ? tm_root.options.cuda_keep_bytes
		       : tm_bits_min(64 * MIB, d->total / 16);
}

/* --- chunks --------------------------------------------------------------------------------------- */

static int chunk_create(void *context, uint64_t bytes, uint64_t *ret_handle)
{
	const struct tm_context *c = context;
	tm_cu_handle handle;
	tm_cu_result rc = tm_driver.cuMemCreate(&handle, bytes, &devices[c->device].prop, 0);
	if (rc != TM_CU_SUCCESS)
		return rc;
	*ret_handle = handle;
	tm_pools_changed(c->device, -(int64_t)bytes);
	return 0;
}

static int chunk_release(void *context, uint64_t bytes, uint64_t handle)
{
	const struct tm_context *c = context;
	tm_pools_changed(c->device, (int64_t)bytes);
	return tm_driver.cuMemRelease(handle);
}

static int chunk_reserve(void *context, uint64_t bytes, uint64_t *ret_at)
{
	tm_cu_ptr at;
	tm_cu_result rc = tm_driver.cuMemAddressReserve(&at, bytes, 0, 0, 0);
	(void)context;
	if (rc == TM_CU_SUCCESS)
		*ret_at = at;
	return rc;
}

static int chunk_unreserve(void *context, uint64_t at, uint64_t bytes)
{
	(void)context;
	return tm_driver.cuMemAddressFree(at, bytes);
}

static int chunk_map(void *context, uint64_t at, uint64_t bytes, uint64_t handle)
{
	(void)context;
	return tm_driver.cuMemMap(at, bytes, 0, handle, 0);
}

static int chunk_unmap(void *context, uint64_t at, uint64_t bytes)
{
	(void)context;
	return tm_driver.cuMemUnmap(at, bytes);
}

static int chunk_grant(void *context, uint64_t at, uint64_t bytes)
{
	const struct tm_context *c = context;
	uint32_t who = devices[c->device].reach | UINT32_C(1) << c->device;
	int rc = 0;
	for (; who != 0 && rc == 0; who &= who - 1) {
		tm_cu_access access = {{TM_CU_LOCATION_DEVICE, (int)tm_bits_lowest(who)},
				       TM_CU_ACCESS_READWRITE};
		rc = tm_driver.cuMemSetAccess(at, bytes, &access, 1);
	}
	return rc;
}

static const struct tm_pool_vmm_ops chunk_ops = {
	chunk_create, chunk_release, chunk_reserve, chunk_unreserve,
	chunk_map,    chunk_unmap,   chunk_grant,
};

/* --- contexts ------------------------------------------------------------------------------------- */

TM_COLD struct tm_pools *tm_pools_make(uint16_t context)
{
	struct tm_context *c = tm_context_at(context);
	struct device *d = device_of(context);
	if (c->pools != NULL)
		return c->pools;
	if (context == 0 || c->device < 0 || c->device >= 32)
		return NULL;
	c->pools = tm_cuda_memory_take(sizeof(*c->pools));
	if (c->pools == NULL)
		return NULL;
	c->pools->vmm.ops = &chunk_ops;
	c->pools->vmm.context = c;
	c->pools->vmm.chunk_bytes = CHUNK_BYTES;
	c->pools->vmm.large_least = (uint32_t)(VMM_LARGE_LEAST / CHUNK_BYTES);
	if (!d->known)
		learn(d, c->device);
	look(d, (uint32_t)tm_clock_ms());
	c->pools->keep_least = least_budget(d);
	return c->pools;
}

static void clear_cache(struct tm_pool_cache *cache)
{
	struct tm_pool_whole *w;
	while ((w = tm_pool_cache_evict(cache)) != NULL)
		tm_cuda_memory_give_record(w);
}

void tm_pools_forget(uint16_t context)
{
	struct tm_context *c = tm_context_at(context);
	struct tm_pools *p = c->pools;
	if (p == NULL)
		return;
	/* Chunks and addresses belong to the device, not to the context, and must be released. */
	tm_pool_vmm_clear(&p->vmm);
	tm_pool_slab_clear(&p->slab);
	clear_cache(&p->whole);
	clear_cache(&p->host);
	c->pools = NULL;
	tm_cuda_memory_give(p, sizeof(*p));
	device_of(context)->looked_ms -= LOOK_MS; /* query its memory again at the next look */
}

/*
 * Device memory that the idle pools occupy. Large allocations of the driver are whole pages of 2
 * MiB; small ones share a page, so freeing them may or may not free it.
 */
static uint64_t cost_of(const struct tm_pools *p)
{
	uint64_t bytes = 0;
	struct tm_list_node *n;
	for (n = p->whole.lru.first; n != NULL; n = n->next) {
		uint64_t size = TM_CONTAINER_OF(n, struct tm_pool_whole, lru)->bytes;
		bytes += size < MIB ? size : tm_bits_align_up(size, CHUNK_BYTES);
	}
	return bytes + tm_pool_vmm_idle_bytes(&p->vmm) + p->slab.slab_bytes - p->slab.live_bytes;
}

uint64_t tm_pools_idle_bytes(tm_cu_device device)
{
	uint64_t bytes = 0;
	uint16_t i = 0;
	while ((i = tm_context_next_of(device, i)) != 0) {
		const struct tm_pools *p = tm_context_at(i)->pools;
		if (p != NULL)
			bytes += cost_of(p);
	}
	return bytes;
}

bool tm_pools_stitched(uint64_t address)
{
	uint16_t i;
	for (i = 1; i < TM_CONTEXTS; i++) {
		const struct tm_pools *p = tm_context_at(i)->pools;
		struct tm_list_node *n;
		if (p == NULL)
			continue;
		for (n = p->vmm.live.first; n != NULL; n = n->next) {
			const struct tm_range *r = TM_CONTAINER_OF(n, struct tm_range, node);
			if (address - r->at < r->chunks * CHUNK_BYTES)
				return true;
		}
		if (tm_pool_vmm_holds(&p->vmm, address))
			return true;
	}
	return false;
}

uint32_t tm_pools_write(struct tm_ledger_gpu_pool *area)
{
	uint32_t count = 0;
	uint16_t i;
	for (i = 1; i < TM_CONTEXTS && count < TM_LEDGER_GPU_POOLS; i++) {
		const struct tm_context *c = tm_context_at(i);
		const struct tm_pools *p = c->pools;
		struct tm_ledger_gpu_pool *to = &area[count];
		if (p == NULL)
			continue;
		to->device = (uint32_t)(c->device < 0 ? 0 : c->device);
		to->cache_idle_bytes = p->whole.idle_bytes;
		to->host_idle_bytes = p->host.idle_bytes;
		to->slab_bytes = p->slab.slab_bytes;
		to->slab_live_bytes = p->slab.live_bytes;
		to->vmm_live_bytes = tm_pool_vmm_live_bytes(&p->vmm);
		to->vmm_bytes = to->vmm_live_bytes + tm_pool_vmm_idle_bytes(&p->vmm);
		to->hits = p->hits;
		to->misses = p->misses;
		to->context = (uintptr_t)c->handle;
		count++;
	}
	return count;
}

void tm_pools_totals(struct tm_pools_totals *ret)
{
	uint16_t i;
	*ret = (struct tm_pools_totals){0};
	for (i = 1; i < TM_CONTEXTS; i++) {
		const struct tm_pools *p = tm_context_at(i)->pools;
		if (p == NULL)
			continue;
		ret->hits += p->hits;
		ret->misses += p->misses;
		ret->idle_bytes += cost_of(p);
		ret->host_idle_bytes += p->host.idle_bytes;
		ret->slab_bytes += p->slab.slab_bytes;
		ret->slab_live_bytes += p->slab.live_bytes;
		ret->vmm_live_bytes += tm_pool_vmm_live_bytes(&p->vmm);
	}
}

/* --- limits --------------------------------------------------------------------------------------- */

uint64_t tm_pools_budget(uint16_t context)
{
	const struct device *d = device_of(context);
	uint64_t least = least_budget(d), tenth;
	if (tm_root.options.cuda_keep_bytes != TM_OPTION_AUTO)
		return least;
	tenth = tm_track_live((unsigned)tm_context_at(context)->device) / 10;
	return tenth > least ? tenth : least;
}

uint64_t tm_pools_spare(uint16_t context, uint64_t asked)
{
	if (tm_root.options.cuda_keep_bytes != TM_OPTION_AUTO)
		return 0;
	return tm_bits_min(tm_bits_align_up(asked, CHUNK_BYTES), device_of(context)->total / 2);
}

uint64_t tm_pools_host_budget(uint16_t context)
{
	uint64_t option = tm_root.options.cuda_host_bytes;
	struct tm_track_total total;
	if (option == TM_OPTION_NONE)
		return 0;
	if (option != TM_OPTION_AUTO)
		return option;
	tm_track_total((unsigned)tm_context_at(context)->device, &total);
	return tm_bits_max(64 * MIB, total.live_bytes[TM_LEDGER_GPU_PINNED] / 4);
}

/*
 * Free memory to leave: modules, graphs and contexts need device memory, too, and can't ask us for
 * it.
 */
static uint64_t low_mark(const struct device *d)
{
	return tm_bits_min(tm_bits_max(512 * MIB, d->total / 50), d->total / 8);
}

bool tm_pools_is_low(uint16_t context, uint32_t now_ms)
{
	struct device *d = device_of(context);
	look(d, now_ms);
	return (int64_t)d->available < (int64_t)low_mark(d);
}

bool tm_pools_runs_ahead(uint16_t context)
{
	const struct tm_context *c = tm_context_at(context);
	const struct tm_pools *p = c->pools;
	uint64_t waiting, most;
	/* If nothing was freed since the last wait, nothing can be waiting. */
	if (p == NULL || (c->frees == 0 && c->count == 0))
		return false;
	waiting =
		p->slab.wait_bytes + p->whole.idle_bytes + p->vmm.idle_chunks * p->vmm.chunk_bytes;
	most = tm_bits_min(256 * MIB, device_of(context)->total / 8);
	return waiting > tm_bits_max(most, tm_track_live((unsigned)c->device));
}

/*
 * Size of the next slab, at most `step`. Few large slabs waste less between blocks than many small
 * ones and cost fewer calls, so the default step doubles the slabs. But free memory has a cost,
 * too: if a tenth of all slabs is free, in holes too small for this request, the largest blocks get
 * a slab of just their size. If slabs were added so rarely that more calls are affordable (one per
 * 180 blocks; the goal is a hundred), every block does, and no new slab may make more than an
 * eighth free. Tuned on 200 seeds of the trace "mix" (tests/cuda/traces_meet_their_figures.c).
 */
static uint64_t thrift(const struct tm_pool_slab *slab, uint64_t step, uint64_t least,
		       uint64_t bytes)
{
	uint64_t unused = slab->slab_bytes - slab->live_bytes - slab->wait_bytes;
	bool may = slab->added * 180 < slab->taken;
	if (unused > slab->slab_bytes / 10 && (may || bytes >= EXACT_LEAST))
		return least;
	while (may && step / 2 >= 2 * least && step > bytes &&
	       unused + step - bytes > (slab->slab_bytes + step) / 8)
		step /= 2;
	return step;
}

uint64_t tm_pools_slab_step(uint16_t context, uint64_t bytes)
{
	const struct device *d = device_of(context);
	const struct tm_pools *p = tm_context_at(context)->pools;
	uint64_t least = tm_bits_min(SLAB_LEAST, d->total / 32);
	bool earned = tm_root.options.cuda_pool == TM_CUDA_POOL_AUTO;
	uint64_t most = tm_bits_clamp(d->total / 64, least, earned ? SLAB_MOST_AUTO : SLAB_MOST);
	uint64_t step = tm_bits_clamp(p == NULL ? 0 : p->slab.slab_bytes, least, most);
	if (bytes != 0 && bytes < TM_POOL_SLAB_SMALL_MOST)
		return TM_POOL_SLAB_SMALL_BYTES;
	if (p != NULL && bytes != 0)
		step = thrift(&p->slab, step, least, bytes);
	while (step / 2 >= CHUNK_BYTES && (int64_t)d->available < (int64_t)(step + low_mark(d)))
		step /= 2;
	return tm_bits_align_up(tm_bits_max(step, bytes), CHUNK_BYTES);
}

/* --- which one ------------------------------------------------------------------------------------ */

/*
 * Libraries whose knowledge of a block outlives it: registrations with network cards, handles in
 * other processes.
 */
static const char *const sharers[] = {"libnccl", "libnvshmem", "libucp.",   "libuct.",
				      "libucm.", "libucs.",    "libfabric", "libnixl"};

bool tm_pools_sharing(uint32_t now_ms)
{
	static _Atomic uint32_t asked_ms, found;
	uint32_t now = now_ms | 1;
	uint32_t before = atomic_load_explicit(&asked_ms, memory_order_relaxed);
	struct tm_elf_object object;
	size_t i;
	if (atomic_load_explicit(&shared, memory_order_relaxed) != 0 ||
	    atomic_load_explicit(&found, memory_order_relaxed) != 0)
		return true;
	/* Libraries are loaded rarely, and the walk takes the loader's lock: look once a second. */
	if (before != 0 && now - before < 1000)
		return false;
	atomic_store_explicit(&asked_ms, now, memory_order_relaxed);
	for (i = 0; i < TM_ARRAY_LEN(sharers); i++) {
		if (tm_elf_named_like(sharers[i], &object)) {
			atomic_store_explicit(&found, 1, memory_order_relaxed);
			return true;
		}
	}
	return false;
}

bool tm_pools_site_is_fine(uintptr_t site)
{
	struct tm_elf_object object;
	const char *name;
	size_t i;
	if (!tm_elf_containing(site, &object) || (name = tm_elf_soname(&object)) == NULL)
		return true;
	for (i = 0; i < TM_ARRAY_LEN(sharers); i++)
		if (tm_str_starts(tm_str_of(name), sharers[i]))
			return false;
	return true;
}

void tm_pools_shared(void)
{
	atomic_store_explicit(&shared, 1, memory_order_relaxed);
}

bool tm_pools_grows_by_chunks(uint16_t context, uint64_t bytes)
{
	const struct device *d = device_of(context);
	const struct tm_pools *p = tm_context_at(context)->pools;
	if (p == NULL || !d->vmm || bytes < CHUNK_BYTES)
		return false;
	return d->available < d->total / 4 || p->vmm.idle_chunks * p->vmm.chunk_bytes >= bytes;
}

enum tm_pools_use tm_pools_choose(uint16_t context, uint64_t bytes,
				  const struct tm_sites_verdict *v, bool sharing)
{
	const struct device *d = device_of(context);
	if (v->demoted)
		return TM_POOLS_NONE;
	switch ((enum tm_cuda_pool)tm_root.options.cuda_pool) {
	case TM_CUDA_POOL_CACHE: return TM_POOLS_WHOLE;
	case TM_CUDA_POOL_SLAB: return TM_POOLS_SLAB;
	case TM_CUDA_POOL_VMM: return d->vmm && bytes >= VMM_LEAST ? TM_POOLS_VMM : TM_POOLS_SLAB;
	case TM_CUDA_POOL_AUTO: break;
	}
	if (!v->vetted || v->use == TM_SITES_PASS)
		return TM_POOLS_NONE;
	if (v->use == TM_SITES_WHOLE)
		return TM_POOLS_WHOLE;
	return sharing ? TM_POOLS_NONE : TM_POOLS_SLAB;
}
