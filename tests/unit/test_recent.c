/* SPDX-License-Identifier: MIT */
/* recent: the blocks given back last are taken again whole, and are free memory to everybody else. */
#include <criterion/criterion.h>

#include "shim/heap/recent.h"
#include "shim/heap/tier.h"
#include "tests/unit/heap_fake.h"

#define BYTES ((size_t)300 << 10)

static struct tm_large_request request(size_t bytes)
{
	return (struct tm_large_request){bytes, 16, TM_FILL_ANY, TM_TIER_SESSION, TM_PART_LARGE};
}

static char *take(size_t bytes)
{
	struct tm_large_request r = request(bytes);

	return tm_large_take(&r);
}

static char *take_again(size_t bytes)
{
	struct tm_large_request r = request(bytes);

	return tm_large_take_again(&r);
}

static void release(void *p)
{
	cr_assert_eq(tm_large_free(p, tm_zone_granule(p)), 0);
}

Test(recent, a_block_given_back_is_taken_again)
{
	size_t used;
	char *a, *b;

	heap_fresh();
	a = take(BYTES);
	b = take(BYTES);
	used = tm_extent_used_bytes();
	release(a);
	cr_assert_eq(tm_extent_used_bytes(), used - BYTES, "it counts as free");
	cr_assert_eq(tm_large_free(a, tm_zone_granule(a)), -EINVAL, "it can't be freed twice");
	cr_assert(take_again(BYTES + TM_PAGE_BYTES) == NULL, "of its length only");
	cr_assert_eq(take_again(BYTES - 100), a);
	cr_assert(take_again(BYTES) == NULL, "and once");
	cr_assert_eq(tm_extent_used_bytes(), used);
	cr_assert_eq(tm_large_usable(tm_zone_granule(a)), BYTES);
	release(a);
	release(b);
	heap_check();
	cr_assert_eq(stats_of(TM_PART_LARGE).free_bytes, stats_of(TM_PART_LARGE).mapped_bytes);
}

Test(recent, others_find_it_as_free_memory)
{
	char *a, *b;

	heap_fresh();
	a = take(BYTES);
	b = take(2 * BYTES);
	cr_assert_eq(b, a + BYTES);
	release(a);
	release(b);
	cr_assert_eq(take(3 * BYTES), a, "both are one run with what is behind them");
	release(a);
	cr_assert(take_again(BYTES) == NULL);
	heap_check();
}

Test(recent, what_is_purged_is_not_kept)
{
	uint64_t now = 1000;
	char *p;

	heap_fresh();
	p = take(2 * MIB);
	memset(p, 1, 2 * MIB);
	release(p);
	cr_assert_eq(tm_purge_retained(), 2 * MIB, "it counts as resident");
	(void)tm_purge_now();
	cr_assert_eq(kernel.dontneed_bytes, 2 * MIB);
	cr_assert(take_again(2 * MIB) == NULL);
	p = take(2 * MIB);
	release(p);
	(void)tm_purge_tick(now);
	cr_assert(take_again(2 * MIB) == NULL, "nor beyond a tick");
	heap_check();
}

Test(recent, known_zero_it_is_not)
{
	struct tm_large_request r = request(BYTES);
	char *p;

	heap_fresh();
	p = take(BYTES);
	memset(p, 1, BYTES);
	release(p);
	r.fill = TM_FILL_ZERO;
	cr_assert_eq(tm_large_take_again(&r), p);
	for (size_t i = 0; i < BYTES; i++)
		cr_assert_eq(p[i], 0);
}

Test(recent, advised_blocks_are_cleansed_instead)
{
	char *p;

	heap_fresh();
	p = take(BYTES);
	memset(p, 1, BYTES);
	tm_zone_taint(p, BYTES);
	release(p);
	cr_assert(take_again(BYTES) == NULL);
	heap_check();
}

Test(recent, what_a_part_keeps_is_bounded)
{
	static char *blocks[64];
	size_t kept = 0;

	heap_fresh();
	for (size_t i = 0; i < 64; i++)
		blocks[i] = take(BYTES + i * 6 * TM_PAGE_BYTES);
	for (size_t i = 0; i < 64; i++)
		release(blocks[i]);
	for (size_t i = 0; i < 64; i++)
		if (take_again(BYTES + i * 6 * TM_PAGE_BYTES))
			kept += BYTES + i * 6 * TM_PAGE_BYTES;
	cr_assert(kept > 0 && kept <= TM_RECENT_PAGES * TM_PAGE_BYTES);
	blocks[0] = take((TM_RECENT_BLOCK_PAGES + 1) * TM_PAGE_BYTES);
	release(blocks[0]);
	cr_assert(take_again((TM_RECENT_BLOCK_PAGES + 1) * TM_PAGE_BYTES) == NULL, "too long");
	heap_check();
}

Test(recent, parts_keep_blocks_of_their_own)
{
	struct tm_large_request r = request(BYTES);
	char *p;

	heap_fresh();
	r.part = TM_PART_PERSISTENT;
	p = tm_large_take(&r);
	release(p);
	cr_assert(take_again(BYTES) == NULL);
	cr_assert_eq(tm_large_take_again(&r), p);
	heap_check();
}

/* A loop of pairs must not keep the part from noticing what it doesn't need. */
Test(recent, a_window_of_the_swing_ends_in_a_search)
{
	size_t taken = 0;
	char *p;

	heap_fresh();
	for (p = take(MIB); p != NULL; p = take_again(MIB)) {
		taken += MIB;
		cr_assert_leq(taken, 64 * MIB);
		release(p);
	}
	cr_assert_eq(take(MIB), tm_zone_page_addr(0));
	heap_check();
}

Test(recent, a_tier_at_its_ceiling_gets_none)
{
	uint64_t max[TM_TIER_COUNT] = {UINT64_MAX, UINT64_MAX, BYTES / 2, UINT64_MAX};
	char *p;

	heap_fresh();
	p = take(BYTES);
	release(p);
	tm_tier_configure(max);
	cr_assert(take_again(BYTES) == NULL);
	cr_assert_eq(tm_tier_refused(TM_TIER_SESSION), 0, "counted where the request fails");
}
