/* SPDX-License-Identifier: MIT */
/* extent: free runs of pages, against a model and at the borders. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "shim/heap/huge.h"
#include "tests/unit/heap_fake.h"

#define PAGES(bytes) ((bytes) / TM_PAGE_BYTES)
#define KIB ((size_t)1 << 10)

static bool is_zero(const void *p, size_t bytes)
{
	const char *c = p;

	return c[0] == 0 && memcmp(c, c + 1, bytes - 1) == 0;
}

Test(extent, takes_the_lowest_and_coalesces)
{
	char *a, *b, *c, *d;

	heap_fresh();
	a = tm_extent_take(TM_PART_SPAN, 16, 16);
	b = tm_extent_take(TM_PART_SPAN, 16, 16);
	c = tm_extent_take(TM_PART_SPAN, 16, 16);
	cr_assert_eq(b, a + 16 * TM_PAGE_BYTES);
	cr_assert_eq(c, b + 16 * TM_PAGE_BYTES);
	tm_extent_give(TM_PART_SPAN, a, 16);
	tm_extent_give(TM_PART_SPAN, c, 16);
	heap_check();
	tm_extent_give(TM_PART_SPAN, b, 16);
	heap_check();
	d = tm_extent_take(TM_PART_SPAN, 512, 1);
	cr_assert_eq(d, a, "one run again");
	heap_check();
}

Test(extent, first_step_is_one_unit_and_then_steps_grow)
{
	heap_fresh();
	cr_assert(tm_extent_take(TM_PART_SPAN, 16, 16));
	cr_assert_eq(stats_of(TM_PART_SPAN).mapped_bytes, TM_UNIT_BYTES);
	for (int i = 0; i < 4000; i++)
		cr_assert(tm_extent_take(TM_PART_SPAN, 16, 16));
	cr_assert_leq(stats_of(TM_PART_SPAN).steps, 30);
	cr_assert_eq(stats_of(TM_PART_LARGE).mapped_bytes, 0);
}

Test(extent, grows_only_by_what_the_free_end_lacks)
{
	heap_fresh();
	cr_assert(tm_extent_take(TM_PART_LARGE, 16, 1));
	/* 496 pages are free at the front: one more unit makes room for 900 */
	cr_assert(tm_extent_take(TM_PART_LARGE, 900, 1));
	cr_assert_eq(stats_of(TM_PART_LARGE).mapped_bytes, 2 * TM_UNIT_BYTES);
	heap_check();
}

Test(extent, alignments_are_kept_up_to_a_gibibyte)
{
	heap_fresh();
	for (size_t align = 1; align <= PAGES((size_t)1 << 30); align *= 2) {
		char *p = tm_extent_take(TM_PART_LARGE, 17, align);

		cr_assert(p);
		cr_assert_eq((uintptr_t)p % (align * TM_PAGE_BYTES), 0);
		heap_check();
	}
	cr_assert(tm_extent_take(TM_PART_LARGE, 17, (size_t)1 << 50) == NULL);
	cr_assert(tm_extent_take(TM_PART_LARGE, SIZE_MAX / 2, 1) == NULL);
	heap_check();
}

Test(extent, parts_never_join)
{
	char *a, *b;

	heap_fresh();
	a = tm_extent_take(TM_PART_LARGE, 512, 512);
	b = tm_extent_take(TM_PART_LARGE, 512, 512);
	cr_assert_eq(a + TM_UNIT_BYTES, b);
	tm_extent_give(TM_PART_LARGE, b, 512);
	cr_assert(tm_extent_hand_over(TM_PART_LARGE, TM_PART_SPAN, 100));
	heap_check();
	tm_extent_give(TM_PART_LARGE, a, 512);
	heap_check();
	cr_assert_eq(tm_extent_take(TM_PART_SPAN, 512, 16), b);
	tm_extent_give(TM_PART_SPAN, b, 512);
	heap_check();
}

Test(extent, grows_in_place_only_into_free_pages)
{
	char *a, *b;

	heap_fresh();
	a = tm_extent_take(TM_PART_LARGE, 20, 1);
	cr_assert(tm_extent_take_at(TM_PART_LARGE, a + 20 * TM_PAGE_BYTES, 5));
	b = tm_extent_take(TM_PART_LARGE, 20, 1);
	cr_assert_eq(b, a + 25 * TM_PAGE_BYTES);
	cr_assert_not(tm_extent_take_at(TM_PART_LARGE, b, 1));
	cr_assert_not(tm_extent_take_at(TM_PART_LARGE, b + 20 * TM_PAGE_BYTES, 100000));
	cr_assert_not(tm_extent_take_at(TM_PART_SPAN, b + 20 * TM_PAGE_BYTES, 1));
	cr_assert_not(tm_extent_take_at(TM_PART_LARGE, (char *)tm_zone.base + tm_zone.len, 1));
	heap_check();
}

Test(extent, fresh_memory_is_known_to_be_zero)
{
	unsigned char seen[256] = {0};
	char *p;

	heap_fresh();
	p = tm_extent_take_zero(TM_PART_LARGE, PAGES(64 * MIB), 1);
	cr_assert_eq(mincore(p, PAGES(MIB), seen) & 0, 0);
	for (size_t i = 0; i < PAGES(MIB); i++)
		cr_assert_eq(seen[i] & 1, 0, "page %zu was written", i);
}

Test(extent, used_memory_is_zeroed_whatever_its_edges)
{
	uint64_t rng = 42;

	heap_fresh();
	for (int i = 0; i < 300; i++) {
		size_t before = 16 + random_next(&rng) % 1500;
		size_t pages = 16 + random_next(&rng) % 2500;
		void *a = tm_extent_take(TM_PART_LARGE, before, 1);
		char *p;

		memset(a, 0xff, before * TM_PAGE_BYTES);
		if (random_next(&rng) % 2) {
			tm_extent_give(TM_PART_LARGE, a, before);
			a = NULL;
		}
		p = tm_extent_take_zero(TM_PART_LARGE, pages, 1);
		cr_assert(p && is_zero(p, pages * TM_PAGE_BYTES));
		memset(p, 0xee, pages * TM_PAGE_BYTES);
		tm_extent_give(TM_PART_LARGE, p, pages);
		if (a)
			tm_extent_give(TM_PART_LARGE, a, before);
		if (i % 50 == 0)
			(void)tm_purge_now();
	}
	heap_check();
}

/* Pieces of memory handed out, each filled with its number. */
#define PIECES 400

struct piece {
	char *p;
	size_t pages;
	enum tm_part part;
	unsigned char fill;
};

static void fill_ends(struct piece *piece)
{
	memset(piece->p, piece->fill, 64);
	memset(piece->p + piece->pages * TM_PAGE_BYTES - 64, piece->fill, 64);
}

static void check_ends(const struct piece *piece)
{
	for (int i = 0; i < 64; i++) {
		cr_assert_eq((unsigned char)piece->p[i], piece->fill);
		cr_assert_eq((unsigned char)piece->p[piece->pages * TM_PAGE_BYTES - 64 + (size_t)i],
			     piece->fill);
	}
}

static void model_take(struct piece *piece, uint64_t *rng)
{
	piece->part = random_next(rng) % 2 ? TM_PART_SPAN : TM_PART_LARGE;
	if (piece->part == TM_PART_SPAN) {
		piece->pages = 16 * (1 + random_next(rng) % 8);
		piece->p = tm_extent_take(TM_PART_SPAN, piece->pages, 16);
	} else if (random_next(rng) % 3 == 0) {
		piece->pages = 16 + random_next(rng) % 700;
		piece->p = tm_extent_take_zero(TM_PART_LARGE, piece->pages, 1);
		cr_assert(is_zero(piece->p, piece->pages * TM_PAGE_BYTES));
	} else {
		piece->pages = 16 + random_next(rng) % ((size_t)16 << random_next(rng) % 8);
		piece->p = tm_extent_take(TM_PART_LARGE, piece->pages,
					  (size_t)1 << random_next(rng) % 10);
	}
	cr_assert(piece->p);
	piece->fill = (unsigned char)random_next(rng);
	fill_ends(piece);
}

/* All of it, or its tail, or its head. */
static void model_give(struct piece *piece, uint64_t *rng)
{
	size_t pages;

	check_ends(piece);
	if (piece->part == TM_PART_SPAN || random_next(rng) % 3 || piece->pages < 40) {
		tm_extent_give(piece->part, piece->p, piece->pages);
		piece->p = NULL;
		return;
	}
	pages = 1 + random_next(rng) % (piece->pages - 20);
	if (random_next(rng) % 2) {
		tm_extent_give(piece->part, piece->p, pages);
		piece->p += pages * TM_PAGE_BYTES;
	} else {
		tm_extent_give(piece->part, piece->p + (piece->pages - pages) * TM_PAGE_BYTES,
			       pages);
	}
	piece->pages -= pages;
	fill_ends(piece);
}

Test(extent, agrees_with_a_model_under_random_use)
{
	static struct piece pieces[PIECES];
	uint64_t rng = 88172645463325252u;
	uint64_t now = 1000;

	heap_fresh();
	for (int i = 0; i < 30000; i++) {
		struct piece *piece = &pieces[random_next(&rng) % PIECES];

		if (piece->p)
			model_give(piece, &rng);
		else
			model_take(piece, &rng);
		if (i % 97 == 0)
			(void)tm_purge_tick(now += 100);
		if (i % 200 == 0)
			heap_check();
	}
	for (int i = 0; i < PIECES; i++)
		if (pieces[i].p)
			tm_extent_give(pieces[i].part, pieces[i].p, pieces[i].pages);
	heap_check();
	for (int i = 0; i < 2; i++)
		cr_assert_eq(stats_of((enum tm_part)i).free_bytes,
			     stats_of((enum tm_part)i).mapped_bytes);
}

Test(extent, idle_memory_of_another_part_comes_before_new_memory)
{
	char *a, *b;

	heap_fresh();
	a = tm_extent_take(TM_PART_SPAN, PAGES(40 * MIB), 16);
	memset(a, 1, 40 * MIB);
	tm_extent_give(TM_PART_SPAN, a, PAGES(40 * MIB));
	for (int i = 0; i < 10; i++) { /* two of 3 MiB in each 8 */
		b = tm_extent_take_zero(TM_PART_LARGE, PAGES(3 * MIB), 1);
		cr_assert(b >= a && b < a + 40 * MIB);
		cr_assert(is_zero(b, 3 * MIB));
		heap_check();
	}
	cr_assert_leq(stats_of(TM_PART_SPAN).mapped_bytes, 4 * MIB);
}

Test(extent, resident_memory_is_taken_before_what_was_given_back)
{
	char *low, *high;

	heap_fresh();
	low = tm_extent_take(TM_PART_LARGE, 16 * 512, 1);
	high = tm_extent_take(TM_PART_LARGE, 16 * 512, 1);
	tm_extent_give(TM_PART_LARGE, low, 16 * 512);
	(void)tm_purge_now();
	tm_extent_give(TM_PART_LARGE, high, 16 * 512);
	heap_check();
	for (char *p, *at = high; at + 700 * KIB <= high + 32 * MIB;
	     at = p + PAGES(700 * KIB) * TM_PAGE_BYTES) {
		p = tm_extent_take(TM_PART_LARGE, PAGES(700 * KIB), 1);
		cr_assert(p >= high, "what is resident serves first");
		heap_check();
	}
	cr_assert_lt(stats_of(TM_PART_LARGE).free_bytes, 36 * MIB);
}

Test(extent, what_others_hold_idle_comes_before_what_was_given_back)
{
	char *span, *block;

	heap_fresh();
	block = tm_extent_take(TM_PART_LARGE, 32 * 512, 1);
	tm_extent_give(TM_PART_LARGE, block, 32 * 512);
	(void)tm_purge_now();
	span = tm_extent_take(TM_PART_SPAN, 16 * 512, 16);
	tm_extent_give(TM_PART_SPAN, span, 16 * 512);
	cr_assert(tm_extent_take(TM_PART_LARGE, 512, 1));
	cr_assert_lt(stats_of(TM_PART_SPAN).retained_bytes, 32 * MIB);
	heap_check();
}

/* A place is found that is resident in part; what another part hands over then fits better. */
Test(extent, only_places_that_were_taken_are_remembered)
{
	char *span, *block;

	heap_fresh();
	block = tm_extent_take(TM_PART_LARGE, 32 * 512, 1);
	(void)tm_extent_take(TM_PART_LARGE, 512, 1); /* keeps the addresses mapped */
	tm_extent_give(TM_PART_LARGE, block, 32 * 512);
	(void)tm_purge_now();
	block = tm_extent_take(TM_PART_LARGE, PAGES(MIB), 1);
	tm_extent_give(TM_PART_LARGE, block, PAGES(MIB));
	span = tm_extent_take(TM_PART_SPAN, 16 * 512, 16);
	tm_extent_give(TM_PART_SPAN, span, 16 * 512);
	block = tm_extent_take(TM_PART_LARGE, 511, 1);
	cr_assert(block >= span && block < span + 32 * MIB);
	heap_check();
}

Test(extent, idle_blocks_go_back_before_spans_get_new_memory)
{
	char *a, *b;

	heap_fresh();
	a = tm_extent_take(TM_PART_LARGE, PAGES(40 * MIB), 1);
	memset(a, 1, 40 * MIB);
	tm_extent_give(TM_PART_LARGE, a, PAGES(40 * MIB));
	for (int i = 0; i < 30 * 32; i++) {
		b = tm_extent_take(TM_PART_SPAN, 16, 16);
		cr_assert(b < a || b >= a + 40 * MIB);
		memset(b, 1, TM_GRANULE_BYTES);
	}
	cr_assert_leq(stats_of(TM_PART_LARGE).retained_bytes, 16 * MIB);
	heap_check();
}

static char *grown_block(size_t bytes)
{
	char *p = tm_large_alloc(MIB, 0, TM_FILL_ANY);

	p = tm_large_resize(p, tm_zone_granule(p), bytes);
	cr_assert_eq(tm_zone_granule(p)->large.part, TM_PART_GROW);
	return p;
}

Test(extent, freed_grown_blocks_go_back_before_spans_get_new_memory)
{
	char *p;

	heap_fresh();
	p = grown_block(10 * MIB);
	cr_assert_eq(tm_large_free(p, tm_zone_granule(p)), 0);
	cr_assert_eq(tm_grow_retained(), 10 * MIB);
	for (int i = 0; i < 12 * 32; i++)
		cr_assert(tm_extent_take(TM_PART_SPAN, 16, 16));
	cr_assert_eq(tm_grow_retained(), 0);
	cr_assert_null(tm_grow_check());
	heap_check();
}

Test(extent, freed_grown_blocks_stay_while_nothing_new_is_taken)
{
	char *p, *b = NULL;

	heap_fresh();
	p = grown_block(10 * MIB);
	cr_assert_eq(tm_large_free(p, tm_zone_granule(p)), 0);
	for (int i = 0; i < 12 * 32; i++) {
		b = tm_extent_take(TM_PART_SPAN, 16, 16);
		tm_extent_give(TM_PART_SPAN, b, 16);
	}
	cr_assert_eq(tm_grow_retained(), 10 * MIB);
	heap_check();
}

/* Others had nothing to give for long: what they must give later is not owed from then. */
Test(extent, what_was_taken_new_long_ago_asks_nobody_for_memory)
{
	char *a;

	heap_fresh();
	for (int i = 0; i < 64 * 32; i++)
		cr_assert(tm_extent_take(TM_PART_SPAN, 16, 16));
	a = tm_extent_take(TM_PART_LARGE, PAGES(20 * MIB), 1);
	tm_extent_give(TM_PART_LARGE, a, PAGES(20 * MIB));
	for (int i = 0; i < 12 * 32; i++)
		cr_assert(tm_extent_take(TM_PART_SPAN, 16, 16));
	cr_assert_leq(stats_of(TM_PART_LARGE).retained_bytes, 10 * MIB);
	heap_check();
}

Test(extent, moves_units_to_a_part_that_is_short)
{
	char *a, *b;

	heap_fresh();
	a = tm_extent_take(TM_PART_LARGE, PAGES(32 * MIB), 1);
	memset(a, 1, 32 * MIB);
	tm_extent_give(TM_PART_LARGE, a, PAGES(32 * MIB));
	kernel.fail_at = 1;
	kernel.fail_rest = 1;
	kernel.calls = 0;
	/* no new mappings and no giving back: the other part's memory serves */
	b = tm_extent_take(TM_PART_SPAN, 16, 16);
	cr_assert(b);
	cr_assert(b >= a && b < a + 32 * MIB);
	heap_check();
	tm_extent_give(TM_PART_SPAN, b, 16);
	heap_check();
}

Test(extent, memory_the_program_tainted_is_mapped_anew)
{
	char *a, *b;

	heap_fresh();
	a = tm_extent_take(TM_PART_LARGE, PAGES(4 * MIB), 512);
	memset(a, 7, 4 * MIB);
	cr_assert_eq(madvise(a + MIB, 64 * 1024, MADV_DONTFORK), 0);
	cr_assert_eq(mprotect(a + 2 * MIB, 4096, PROT_NONE), 0);
	tm_zone_taint(a + MIB, 64 * 1024);
	tm_zone_taint(a + 2 * MIB, 4096);
	tm_extent_give(TM_PART_LARGE, a, PAGES(4 * MIB));
	b = tm_extent_take(TM_PART_LARGE, PAGES(4 * MIB), 512);
	cr_assert_eq(a, b);
	memset(b, 1, 4 * MIB);
	cr_assert_not(tm_zone_is_tainted(tm_zone_page(b), PAGES(4 * MIB)));
	heap_check();
}

Test(extent, refusals_leave_it_consistent)
{
	for (long n = 1; n < 30; n++) {
		uint64_t rng = (uint64_t)n;
		struct piece pieces[40] = {{0}};

		heap_fresh();
		kernel.fail_at = n;
		kernel.fail_rest = (int)(n % 2);
		for (int i = 0; i < 40; i++) {
			pieces[i].pages = 16 + random_next(&rng) % 4000;
			pieces[i].p = tm_extent_take((enum tm_part)(i % 2),
						     pieces[i].pages & ~(size_t)15, 16);
			if (i % 3 == 0 && pieces[i].p) {
				tm_extent_give((enum tm_part)(i % 2), pieces[i].p,
					       pieces[i].pages & ~(size_t)15);
				pieces[i].p = NULL;
			}
		}
		heap_check();
		for (int i = 0; i < 40; i++)
			if (pieces[i].p)
				tm_extent_give((enum tm_part)(i % 2), pieces[i].p,
					       pieces[i].pages & ~(size_t)15);
		heap_check();
		kernel.fail_at = 0;
		cr_assert(tm_extent_take(TM_PART_LARGE, PAGES(100 * MIB), 1));
		heap_check();
	}
}

/* The rest of a huge page is resident, too: it is idle memory, and the next block gets it. */
Test(extent, the_rest_of_a_huge_page_counts_as_idle)
{
	size_t fresh;
	char *p, *q;

	heap_fresh();
	tm_zone.huge = TM_THP_MADVISE;
	p = tm_extent_take(TM_PART_LARGE, TM_UNIT_PAGES, TM_UNIT_PAGES);
	cr_assert_not_null(tm_extent_take(TM_PART_LARGE, TM_UNIT_PAGES, 1));
	tm_extent_give(TM_PART_LARGE, p, TM_UNIT_PAGES);
	tm_purge_now();
	tm_huge_advise(tm_zone_page(p), 1);
	q = tm_extent_take(TM_PART_LARGE, TM_UNIT_PAGES / 2, 1);
	cr_assert_eq(q, p);
	cr_assert_eq(stats_of(TM_PART_LARGE).sparse_bytes, TM_UNIT_BYTES / 2);
	fresh = tm_extent_fresh_bytes(TM_PART_LARGE);
	q = tm_extent_take(TM_PART_LARGE, TM_UNIT_PAGES / 2, 1);
	cr_assert_eq(q, p + TM_UNIT_BYTES / 2);
	cr_assert_eq(tm_extent_fresh_bytes(TM_PART_LARGE), fresh);
	cr_assert_eq(stats_of(TM_PART_LARGE).sparse_bytes, 0);
	heap_check();
}
