/* SPDX-License-Identifier: MIT */
/* pymalloc: pools by their headers. */
#include <criterion/criterion.h>
#include <string.h>

#include "shim/base/pymalloc.h"

#define BASE ((uint64_t)1 << 44)
#define PAGES 3000u

static uint8_t memory[PAGES][48];
static uint8_t present[PAGES];

static void put(size_t page, size_t pool, unsigned size_class, unsigned count)
{
	unsigned size = (size_class + 1) * 16;
	struct tm_pymalloc_header h = {.count = count,
				       .arena = 1,
				       .size_class = size_class,
				       .next_offset = 48 + size * 2,
				       .last_offset = (uint32_t)pool - size};

	memcpy(memory[page], &h, sizeof(h));
	memset(present + page, 1, pool / 4096);
}

static bool look(uint64_t at, size_t pages, uint8_t *ret, void *arg)
{
	(void)arg;
	memcpy(ret, present + (at - BASE) / 4096, pages);
	return true;
}

static void read_headers(const uint64_t *at, size_t count, struct tm_pymalloc_header *ret,
			 void *arg)
{
	for (size_t i = 0; i < count; i++) {
		cr_assert(present[(at[i] - BASE) / 4096], "a page that is not there is touched");
		memcpy(&ret[i], memory[(at[i] - BASE) / 4096], sizeof(*ret));
	}
	*(size_t *)arg += count;
}

static struct tm_pymalloc_sum sum_of(size_t from, size_t to)
{
	static struct tm_pymalloc_room room;
	size_t reads = 0;
	struct tm_pymalloc_source source = {look, read_headers, &reads, &room};
	struct tm_pymalloc_sum sum = {0, 0};

	tm_pymalloc_look(&source, BASE + from * 4096, BASE + to * 4096, &sum);
	return sum;
}

Test(pymalloc, pools_of_both_sizes_are_counted_once)
{
	for (size_t page = 4; page < 2404; page += 4)
		put(page, 16384, page % 32, 3);
	present[8 + 3] = 0; /* never written */
	cr_assert_eq(sum_of(1, PAGES).pools_bytes, 600 * 16384);
	cr_assert_eq(sum_of(1, PAGES).resident_bytes, 600 * 16384 - 4096);
	memset(memory, 0, sizeof(memory));
	for (size_t page = 5; page < 1405; page++)
		put(page, 4096, page % 32, 1);
	cr_assert_eq(sum_of(5, PAGES).pools_bytes, 1400 * 4096);
	cr_assert_eq(sum_of(6, 1000).pools_bytes, 994 * 4096);
	memset(present, 0, sizeof(present));
	cr_assert_eq(sum_of(0, PAGES).pools_bytes, 0);
}

Test(pymalloc, other_memory_is_no_pool)
{
	struct tm_pymalloc_header good = {.count = 3,
					  .free = BASE + 48 + 32,
					  .size_class = 1,
					  .next_offset = 48 + 96,
					  .last_offset = 16384 - 32};
	struct tm_pymalloc_header h = good, zero = {.count = 0};
	uint64_t seed = 1;

	cr_assert_eq(tm_pymalloc_pool(&h, BASE), 16384);
	cr_assert_eq(tm_pymalloc_pool(&h, BASE + 4096), 0);
	h.free = BASE + 47;
	cr_assert_eq(tm_pymalloc_pool(&h, BASE), 0);
	h = good, h.next_offset++;
	cr_assert_eq(tm_pymalloc_pool(&h, BASE), 0);
	h = good, h.count = 511;
	cr_assert_eq(tm_pymalloc_pool(&h, BASE), 0);
	h = good, h.size_class = UINT32_MAX;
	cr_assert_eq(tm_pymalloc_pool(&h, BASE), 0);
	cr_assert_eq(tm_pymalloc_pool(&zero, BASE), 0);
	for (unsigned i = 0; i < 100000; i++) {
		uint64_t words[6];

		for (unsigned k = 0; k < 6; k++)
			words[k] = (seed = seed * 6364136223846793005u + 1442695040888963407u) >>
				   (k * 7);
		memcpy(&h, words, sizeof(h));
		cr_assert_eq(tm_pymalloc_pool(&h, BASE), 0);
	}
}
