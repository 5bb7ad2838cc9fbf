/* SPDX-License-Identifier: MIT */
#include "config.h"

#if TM_HAVE_CUDA
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_hooks/pool_cache.h"
#include "cuda_hooks/pool_slab.h"
#include "cuda_hooks/pool_vmm.h"
#include "cuda_hooks/sites.h"
#include "cuda_hooks/track.h"

#define MIB ((uint64_t)1 << 20)

static uint32_t seed = 1;

static uint32_t draw(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)(seed >> 8) * below >> 24);
}

/* --- whole blocks --------------------------------------------------------------------------------- */

static struct tm_pool_whole *whole(uint64_t at, uint64_t bytes, uint32_t epoch)
{
	struct tm_pool_whole *w = calloc(1, sizeof(*w));
	w->at = at;
	w->bytes = bytes;
	w->epoch = epoch;
	return w;
}

Test(cuda_cache, gives_only_the_very_size)
{
	static struct tm_pool_cache c;
	tm_pool_cache_give(&c, whole(0x1000, 100, 1));
	cr_assert_null(tm_pool_cache_take(&c, 99, 0, 0, 1, NULL));
	cr_assert_null(tm_pool_cache_take(&c, 101, 0, 0, 1, NULL));
	cr_assert_eq(tm_pool_cache_take(&c, 100, 0, 0, 1, NULL)->at, 0x1000);
	cr_assert_eq(c.idle_bytes, 0);
}

Test(cuda_cache, slack_gives_the_nearest)
{
	static struct tm_pool_cache c;
	tm_pool_cache_give(&c, whole(1, 128, 0));
	tm_pool_cache_give(&c, whole(2, 104, 0));
	tm_pool_cache_give(&c, whole(3, 112, 0));
	cr_assert_eq(tm_pool_cache_take(&c, 100, 16, 0, 0, NULL)->at, 2);
	cr_assert_eq(tm_pool_cache_take(&c, 100, 16, 0, 0, NULL)->at, 3);
	cr_assert_null(tm_pool_cache_take(&c, 100, 16, 0, 0, NULL));
}

Test(cuda_cache, a_block_that_waits_is_told_of)
{
	static struct tm_pool_cache c;
	bool waiting = false;
	tm_pool_cache_give(&c, whole(1, 64, 7));
	cr_assert_null(tm_pool_cache_take(&c, 64, 0, 0, 6, &waiting));
	cr_assert(waiting);
	cr_assert_not_null(tm_pool_cache_take(&c, 64, 0, 0, 7, &waiting));
}

Test(cuda_cache, the_longest_idle_one_is_evicted)
{
	static struct tm_pool_cache c;
	uint64_t i;
	for (i = 1; i <= 100; i++)
		tm_pool_cache_give(&c, whole(i, i * 4096, 0));
	cr_assert_eq(tm_pool_cache_check(&c), 0);
	cr_assert(tm_pool_cache_holds(&c, 50));
	for (i = 1; i <= 100; i++)
		cr_assert_eq(tm_pool_cache_evict(&c)->at, i);
	cr_assert_null(tm_pool_cache_evict(&c));
	cr_assert_eq(tm_pool_cache_check(&c), 0);
}

/* --- slabs ---------------------------------------------------------------------------------------- */

Test(cuda_slab, best_fit_and_neighbours_join)
{
	static struct tm_pool_slab p;
	struct tm_chunk *a, *b, *c, *d;
	uint64_t bytes;
	cr_assert(tm_pool_slab_add(&p, 64 * MIB, 8 * MIB, TM_SLAB_MIDDLE));
	a = tm_pool_slab_take(&p, MIB);
	b = tm_pool_slab_take(&p, 3 * MIB);
	c = tm_pool_slab_take(&p, MIB);
	d = tm_pool_slab_take(&p, 3 * MIB);
	cr_assert_null(tm_pool_slab_take(&p, 1));
	tm_pool_slab_give(&p, b, 1);
	tm_pool_slab_give(&p, a, 1);
	cr_assert_null(tm_pool_slab_take(&p, 1), "the device may still use it");
	tm_pool_slab_settle(&p, 1);
	cr_assert_eq(tm_pool_slab_check(&p), 0);
	a = tm_pool_slab_take(&p, 4 * MIB);
	cr_assert_eq(a->at, 64 * MIB);
	tm_pool_slab_give(&p, a, 2);
	tm_pool_slab_give(&p, c, 2);
	tm_pool_slab_give(&p, d, 2);
	cr_assert_eq(tm_pool_slab_remove_empty(&p, &bytes), 0);
	tm_pool_slab_settle(&p, 2);
	cr_assert_eq(p.empty_bytes, 8 * MIB);
	cr_assert_eq(tm_pool_slab_remove_empty(&p, &bytes), 64 * MIB);
	cr_assert_eq(bytes, 8 * MIB);
	cr_assert_eq(tm_pool_slab_check(&p), 0);
}

/* As the caller does: the one that was freed last, else the best fit. */
static struct tm_chunk *take_any(struct tm_pool_slab *p, uint64_t bytes)
{
	struct tm_chunk *c = tm_pool_slab_again(p, bytes, UINT32_MAX / 2);
	return c != NULL ? c : tm_pool_slab_take(p, bytes);
}

Test(cuda_slab, the_block_freed_last_is_given_again)
{
	struct tm_pool_slab p = {0};
	struct tm_chunk *a, *b;
	cr_assert(tm_pool_slab_add(&p, 0x10000000, 8 * MIB, TM_SLAB_MIDDLE));
	a = tm_pool_slab_take(&p, 2 * MIB);
	b = tm_pool_slab_take(&p, 3 * MIB);
	tm_pool_slab_give(&p, a, 5);
	cr_assert_null(tm_pool_slab_again(&p, 2 * MIB, 4), "the device may still use it");
	cr_assert_null(tm_pool_slab_again(&p, 2 * MIB - 512, 5), "another size");
	cr_assert_null(tm_pool_slab_again(&p, 2 * MIB + 1, 5));
	cr_assert_eq(tm_pool_slab_again(&p, 2 * MIB - 511, 5), a);
	cr_assert_null(tm_pool_slab_again(&p, 2 * MIB, 5), "it is taken");
	cr_assert_eq(tm_pool_slab_check(&p), 0);
	tm_pool_slab_give(&p, a, 6);
	tm_pool_slab_give(&p, b, 6);
	cr_assert_null(tm_pool_slab_again(&p, 2 * MIB, 6), "another was freed since");
	cr_assert_eq(tm_pool_slab_check(&p), 0);
	tm_pool_slab_clear(&p);
}

Test(cuda_slab, a_few_are_settled_at_a_time)
{
	struct tm_pool_slab p = {0};
	struct tm_chunk *c[12];
	unsigned i;
	cr_assert(tm_pool_slab_add(&p, 0x10000000, 12 * MIB, TM_SLAB_MIDDLE));
	for (i = 0; i < 12; i++)
		c[i] = tm_pool_slab_take(&p, MIB);
	for (i = 0; i < 12; i++)
		tm_pool_slab_give(&p, c[i], i < 6 ? 1 : 2);
	cr_assert_not(tm_pool_slab_settle_some(&p, 0), "the device may still use them");
	cr_assert(tm_pool_slab_settle_some(&p, 1));
	cr_assert(p.wait_bytes < 12 * MIB && p.wait_bytes > 6 * MIB, "%lu", p.wait_bytes / MIB);
	while (tm_pool_slab_settle_some(&p, 1))
		cr_assert_eq(tm_pool_slab_check(&p), 0);
	cr_assert_eq(p.wait_bytes, 6 * MIB);
	while (tm_pool_slab_settle_some(&p, 2))
		continue;
	cr_assert_eq(p.wait_bytes, MIB, "the last one's size may be asked for again");
	cr_assert_eq(tm_pool_slab_again(&p, MIB, 2), c[11]);
	tm_pool_slab_give(&p, c[11], 3);
	c[0] = tm_pool_slab_take(&p, 2 * MIB);
	cr_assert(tm_pool_slab_settle_some(&p, 3), "another size was");
	tm_pool_slab_give(&p, c[0], 3);
	cr_assert(tm_pool_slab_settle(&p, 3));
	cr_assert_eq(p.empty_bytes, 12 * MIB);
	cr_assert_eq(tm_pool_slab_check(&p), 0);
	tm_pool_slab_clear(&p);
}

Test(cuda_slab, random_use_keeps_order)
{
	static struct tm_pool_slab p;
	static struct tm_chunk *live[500];
	uint32_t epoch = 1, i;
	for (i = 0; i < 8; i++)
		cr_assert(tm_pool_slab_add(&p, (i + 1) * 1024 * MIB, 64 * MIB,
					   (enum tm_slab_kind)(i % 2)));
	for (i = 0; i < 20000; i++) {
		uint32_t n = draw(500);
		if (live[n] != NULL) {
			tm_pool_slab_give(&p, live[n], epoch);
			live[n] = NULL;
		} else {
			live[n] = take_any(&p, 1 + draw(1u << (8 + draw(14))));
			cr_assert(live[n] == NULL || live[n]->at % TM_POOL_SLAB_GRAIN == 0);
		}
		if (i % 64 == 0)
			tm_pool_slab_settle(&p, epoch++ - 1);
		if (i % 5 == 0)
			tm_pool_slab_settle_some(&p, epoch);
		if (i % 1000 == 0)
			cr_assert_eq(tm_pool_slab_check(&p), 0);
	}
	for (i = 0; i < 500; i++)
		if (live[i] != NULL)
			tm_pool_slab_give(&p, live[i], epoch);
	tm_pool_slab_settle(&p, epoch);
	cr_assert_eq(p.empty_bytes, 512 * MIB);
	tm_pool_slab_clear(&p);
}

/* --- stitched blocks ------------------------------------------------------------------------------ */

static struct {
	uint64_t next, handles, bytes, most, mapped, reserved;
	int fail_map;
} device;

static int create(void *context, uint64_t bytes, uint64_t *ret)
{
	(void)context;
	if (device.handles == device.most)
		return 2;
	device.handles++;
	device.bytes += bytes;
	*ret = ++device.next;
	return 0;
}

static int release_one(void *context, uint64_t bytes, uint64_t handle)
{
	(void)context;
	(void)handle;
	device.handles--;
	device.bytes -= bytes;
	return 0;
}

static int reserve(void *context, uint64_t bytes, uint64_t *ret)
{
	(void)context;
	device.next += 1u << 30;
	*ret = device.next & ~(2 * MIB - 1);
	device.reserved += bytes;
	return 0;
}

static int unreserve(void *context, uint64_t at, uint64_t bytes)
{
	(void)context;
	(void)at;
	device.reserved -= bytes;
	return 0;
}

static int map(void *context, uint64_t at, uint64_t bytes, uint64_t handle)
{
	(void)context;
	(void)at;
	(void)handle;
	if (device.fail_map != 0 && --device.fail_map == 0)
		return 999;
	device.mapped += bytes;
	return 0;
}

static int unmap(void *context, uint64_t at, uint64_t bytes)
{
	(void)context;
	(void)at;
	device.mapped -= bytes;
	return 0;
}

static int grant(void *context, uint64_t at, uint64_t bytes)
{
	(void)context;
	(void)at;
	(void)bytes;
	return 0;
}

static const struct tm_pool_vmm_ops ops = {create, release_one, reserve, unreserve,
					   map,    unmap,       grant};

Test(cuda_vmm, chunks_move_between_lengths)
{
	static struct tm_pool_vmm p = {.ops = &ops, .chunk_bytes = 2 * MIB};
	struct tm_range *a, *b;
	device.most = 8;
	cr_assert_eq(tm_pool_vmm_take(&p, 5 * MIB, 0, &a), 0);
	cr_assert_eq(a->chunks, 3);
	cr_assert_eq(tm_pool_vmm_take(&p, 10 * MIB, 0, &b), 0);
	cr_assert_eq(device.handles, 8);
	tm_pool_vmm_give(&p, a, 1);
	tm_pool_vmm_give(&p, b, 1);
	cr_assert_null(tm_pool_vmm_again(&p, 10 * MIB, 0), "it may still be in use");
	cr_assert_null(tm_pool_vmm_again(&p, 12 * MIB, 1), "none is as long");
	cr_assert_eq(tm_pool_vmm_take(&p, 16 * MIB, 0, &a), 2, "both may still be in use");
	cr_assert_eq(tm_pool_vmm_take(&p, 16 * MIB, 1, &a), 0);
	cr_assert_eq(p.created, 8);
	cr_assert_eq(device.mapped, 16 * MIB);
	cr_assert_eq(device.reserved, 16 * MIB);
	tm_pool_vmm_give(&p, a, 2);
	cr_assert_eq(tm_pool_vmm_check(&p), 0);
	cr_assert_eq(tm_pool_vmm_trim(&p, 4 * MIB, 2), 12 * MIB);
	cr_assert_eq(device.handles, 2);
	tm_pool_vmm_clear(&p);
	cr_assert_eq(device.handles, 0);
	cr_assert_eq(device.reserved, 0);
}

Test(cuda_vmm, a_failed_mapping_leaves_nothing_behind)
{
	static struct tm_pool_vmm p = {.ops = &ops, .chunk_bytes = 2 * MIB};
	struct tm_range *a;
	device.most = 8;
	device.fail_map = 3;
	cr_assert_eq(tm_pool_vmm_take(&p, 8 * MIB, 0, &a), 999);
	cr_assert_eq(device.mapped, 0);
	cr_assert_eq(device.reserved, 0);
	cr_assert_eq(tm_pool_vmm_check(&p), 0);
	cr_assert_eq(tm_pool_vmm_take(&p, 8 * MIB, 0, &a), 0);
	cr_assert_eq(p.created, 4);
}

Test(cuda_vmm, long_blocks_are_made_of_large_chunks)
{
	static struct tm_pool_vmm p = {
		.ops = &ops, .chunk_bytes = 2 * MIB, .large_least = 16, .small = {NULL, 0, 0}};
	struct tm_range *a, *b;
	device.most = 100;
	cr_assert_eq(tm_pool_vmm_take(&p, 37 * MIB, 0, &a), 0);
	cr_assert_eq(a->chunks, 19);
	cr_assert_eq(a->large, 4, "and three small ones");
	cr_assert_eq(device.handles, 7);
	cr_assert_eq(device.mapped, 38 * MIB);
	tm_pool_vmm_give(&p, a, 0);
	cr_assert_eq(tm_pool_vmm_take(&p, 18 * MIB, 0, &b), 0, "no long one, but of what there is");
	cr_assert_eq(b->large, 2);
	cr_assert_eq(device.handles, 7);
	cr_assert_eq(tm_pool_vmm_idle_bytes(&p), 20 * MIB);
	cr_assert_eq(tm_pool_vmm_take(&p, 6 * MIB, 0, &a), 0);
	cr_assert_eq(a->large, 0);
	cr_assert_eq(tm_pool_vmm_idle_bytes(&p), 8 * MIB, "a large one made room for small ones");
	cr_assert_eq(device.mapped + tm_pool_vmm_idle_bytes(&p), 32 * MIB);
	cr_assert_eq(tm_pool_vmm_check(&p), 0);
	tm_pool_vmm_give(&p, a, 0);
	tm_pool_vmm_give(&p, b, 0);
	cr_assert_eq(tm_pool_vmm_take(&p, 32 * MIB, 0, &a), 0);
	cr_assert_eq(tm_pool_vmm_check(&p), 0);
	tm_pool_vmm_give(&p, a, 0);
	tm_pool_vmm_clear(&p);
	cr_assert_eq(device.handles, 0);
	cr_assert_eq(device.mapped, 0);
	cr_assert_eq(device.reserved, 0);
}

Test(cuda_vmm, random_lengths_lose_no_chunk)
{
	static struct tm_pool_vmm p = {.ops = &ops, .chunk_bytes = 2 * MIB, .large_least = 12};
	static struct tm_range *live[40];
	uint32_t i, epoch = 1;
	device.most = 600;
	for (i = 0; i < 20000; i++) {
		uint32_t n = draw(40);
		if (live[n] != NULL) {
			tm_pool_vmm_give(&p, live[n], epoch);
			live[n] = NULL;
		} else if (tm_pool_vmm_take(&p, 1 + (uint64_t)draw(60 * (uint32_t)MIB), epoch - 1,
					    &live[n]) != 0) {
			live[n] = NULL;
		}
		if (i % 16 == 0)
			epoch++;
		if (i % 500 == 0)
			tm_pool_vmm_trim(&p, draw(64) * MIB, epoch - 1);
		device.fail_map = i % 97 == 0 ? 1 + (int)draw(9) : 0;
		cr_assert_eq(tm_pool_vmm_check(&p), 0);
		cr_assert_eq(device.mapped, (p.idle_chunks + p.live_chunks) * 2 * MIB);
		cr_assert_eq(device.bytes, tm_pool_vmm_idle_bytes(&p) + tm_pool_vmm_live_bytes(&p));
	}
	tm_pool_vmm_clear(&p);
	cr_assert_eq(device.bytes, 0);
	cr_assert_eq(device.reserved, 0);
}

/* --- sites ---------------------------------------------------------------------------------------- */

static uint32_t cycle(uint64_t site, uint64_t bytes, uint32_t at_ms, uint32_t life_ms)
{
	struct tm_sites_verdict v;
	uint32_t n = tm_sites_born(site, bytes, at_ms, &v);
	tm_sites_died(n, at_ms, at_ms + life_ms);
	return n;
}

Test(cuda_sites, eight_short_lives_of_one_size_earn_a_pool)
{
	uint32_t i, n = 0;
	for (i = 0; i < 8; i++) {
		n = cycle(1, 4 * MIB, i * 10, 5);
		cr_assert_eq(tm_sites_verdict(n, 100).use, i < 7 ? TM_SITES_PASS : TM_SITES_WHOLE);
	}
	cr_assert_eq(tm_sites_verdict(n, 100).tier, TM_TIER_TEMPORARY);
	tm_sites_demote(n);
	cr_assert_eq(tm_sites_verdict(n, 100).use, TM_SITES_PASS);
	cr_assert_eq(tm_sites_verdict(cycle(1, 64, 0, 1), 0).use, TM_SITES_PASS,
		     "all sizes of the site");
}

Test(cuda_sites, varied_sizes_want_a_pool_that_cuts)
{
	uint32_t i, n = 0;
	for (i = 0; i < 40; i++)
		n = cycle(2, (i + 1) * 777777, i * 10, 5);
	cr_assert_eq(tm_sites_verdict(n, 500).use, TM_SITES_VARIED);
}

Test(cuda_sites, long_lives_are_sessions_and_no_deaths_persistent)
{
	struct tm_sites_verdict v;
	uint32_t i, n = 0;
	for (i = 0; i < 9; i++)
		n = cycle(3, MIB, i * 5000, 4000);
	cr_assert_eq(tm_sites_verdict(n, 50000).use, TM_SITES_PASS);
	cr_assert_eq(tm_sites_verdict(n, 50000).tier, TM_TIER_SESSION);
	n = tm_sites_born(4, MIB, 0, &v);
	cr_assert_eq(tm_sites_verdict(n, 9000).tier, TM_TIER_ALL);
	cr_assert_eq(tm_sites_verdict(n, 11000).tier, TM_TIER_PERSISTENT);
}

Test(cuda_sites, a_full_table_passes_everything_through)
{
	struct tm_sites_verdict v;
	uint32_t n = 1;
	uint64_t site;
	for (site = 100; site < 10000; site++)
		n = tm_sites_born(site, MIB, 0, &v);
	cr_assert_eq(n, 0);
	cr_assert_eq(tm_sites_verdict(n, 0).use, TM_SITES_PASS);
}

/* --- the account ---------------------------------------------------------------------------------- */

static bool add(uint64_t at, struct tm_track_block *b, const struct tm_track_where *where)
{
	b->kind = (uint8_t)where->kind;
	b->row = tm_track_row_of(where);
	return tm_track_add(TM_TRACK_ADDRESS, at, b);
}

Test(cuda_track, random_blocks_are_found_until_they_go)
{
	static uint64_t live[3000];
	struct tm_track_where where = {.site = 0x1234, .context = 1, .kind = TM_LEDGER_GPU_DEVICE};
	struct tm_track_total total;
	uint64_t bytes = 0, i, start;
	for (i = 0; i < 100000; i++) {
		uint32_t n = draw(3000);
		uint64_t at = 0x700000000000 + (uint64_t)n * 4096;
		if (live[n] == 0) {
			struct tm_track_block b = {.bytes = 1 + draw(4096), .refs = 1};
			where.site = 0x1000 + draw(50);
			live[n] = b.bytes;
			bytes += b.bytes;
			cr_assert(add(at, &b, &where));
		} else {
			struct tm_track_block b;
			cr_assert(tm_track_remove(TM_TRACK_ADDRESS, at, &b));
			cr_assert_eq(b.bytes, live[n]);
			bytes -= b.bytes;
			live[n] = 0;
		}
		if (i % 10000 == 0)
			cr_assert_eq(tm_track_check(), 0);
	}
	tm_track_total(0, &total);
	cr_assert_eq(total.live_bytes[TM_LEDGER_GPU_DEVICE], bytes);
	for (i = 0; live[i] < 2; i++)
		;
	cr_assert_not_null(tm_track_around(0x700000000000 + i * 4096 + live[i] - 1, &start));
	cr_assert_eq(start, 0x700000000000 + i * 4096);
	cr_assert_null(tm_track_find(TM_TRACK_ARRAY, start), "other names");
	tm_track_forget_context(0, NULL);
	tm_track_total(0, &total);
	cr_assert_eq(total.live_bytes[TM_LEDGER_GPU_DEVICE], 0);
	cr_assert_eq(tm_track_check(), 0);
}

Test(cuda_track, rows_survive_the_move_into_the_ledger)
{
	static struct tm_ledger_gpu area[TM_LEDGER_GPU_ROWS];
	struct tm_track_where where = {
		.site = 0x99, .context = 5, .device = 2, .kind = TM_LEDGER_GPU_PINNED};
	struct tm_track_block b = {.bytes = 100, .refs = 1};
	uint32_t count = 0;
	uint64_t lost = 0;
	add(0x1000, &b, &where);
	tm_track_move_rows(area, &count, &lost);
	cr_assert_eq(count, 2);
	cr_assert_eq(area[1].site, 0x99);
	cr_assert_eq(area[1].live_bytes, 100);
	add(0x2000, &b, &where);
	cr_assert_eq(area[1].live_bytes, 200);
	tm_track_remove(TM_TRACK_ADDRESS, 0x1000, &b);
	tm_track_restore(&b);
	cr_assert_eq(area[1].live_objects, 2);
	cr_assert_eq(area[1].objects, 2);
	cr_assert_eq(tm_track_check(), 0);
}

Test(cuda_track, more_sites_than_rows_are_counted_together)
{
	static uint32_t count;
	static uint64_t lost;
	static struct tm_ledger_gpu area[TM_LEDGER_GPU_ROWS];
	struct tm_track_block b = {.bytes = 10, .refs = 1};
	uint64_t i;
	tm_track_move_rows(area, &count, &lost);
	for (i = 0; i < 2000; i++) {
		struct tm_track_where where = {.site = 0x5000 + i};
		add(0x100000 + i * 64, &b, &where);
	}
	cr_assert_eq(count, TM_LEDGER_GPU_ROWS);
	cr_assert_eq(area[0].live_objects, 2000 - (TM_LEDGER_GPU_ROWS - 1));
	cr_assert_gt(lost, 0);
}
#else
typedef int tm_no_cuda;
#endif
