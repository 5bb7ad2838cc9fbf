/* SPDX-License-Identifier: MIT */
/* account: sites keep their rows, and what a thread comes from again is found at once. */
#include <criterion/criterion.h>

#include "shim/heap/account.h"
#include "shim/thread.h"
#include "tests/unit/engine.h"

#define SITES 3000u

static unsigned id[SITES];

static struct tm_site site_of(const struct tm_heap *h, unsigned n)
{
	uint32_t mixed = n * 2654435761u;

	return (struct tm_site){0x400000 + (mixed >> 10), h->stack_top - 1024 - 16 * (mixed >> 26)};
}

static bool is_at_home(const struct tm_heap *h, struct tm_site site)
{
	uint64_t ignored;

	return tm_account_probe(h, tm_account_key(site), &ignored) != NULL ||
	       tm_account_probe(h, site.return_address, &ignored) != NULL;
}

Test(account, who_comes_again_is_found_at_once)
{
	unsigned away = 0;

	need_engine();
	struct tm_thread_heap held = tm_thread_enter();

	cr_assert_neq(held.hold, TM_THREAD_NONE);
	/* so many misses that the table of keys becomes as large as it may be */
	for (unsigned round = 0; round < 20; round++)
		for (unsigned n = 0; n < SITES; n++) {
			unsigned now =
				tm_account_id(held.heap, site_of(held.heap, n), TM_ACCOUNT_ALWAYS);

			cr_assert_neq(now, 0);
			cr_assert(round == 0 || now == id[n], "site %u", n);
			id[n] = now;
		}
	for (unsigned n = 0; n < SITES; n++) {
		struct tm_site site = site_of(held.heap, n);

		if (is_at_home(held.heap, site))
			continue;
		away++;
		cr_assert_eq(tm_account_id(held.heap, site, 1), id[n]);
		cr_assert(is_at_home(held.heap, site), "site %u", n);
	}
	for (unsigned n = 0; n < SITES; n++)
		cr_assert_eq(tm_account_id(held.heap, site_of(held.heap, n), 1), id[n]);
	tm_thread_leave(held);
	cr_assert_neq(away, 0, "nothing was tested");
}

/* `import torch` asks from thousands of places once; what it runs later must be told apart. */
Test(account, the_second_half_of_the_rows_is_for_who_asks_often)
{
	unsigned first[2] = {0, 0}, second[2] = {0, 0}, lumped = 0, n = 0;

	need_engine();
	struct tm_thread_heap held = tm_thread_enter();
	struct tm_heap *h = held.heap;

	cr_assert_neq(held.hold, TM_THREAD_NONE);
	for (; n < 20000; n++)
		lumped += tm_account_id(h, site_of(h, n), 64) == 0;
	cr_assert_gt(lumped, 10000);
	cr_assert_lt(h->rows, TM_ROW_LIMIT - 512, "%u rows", (unsigned)h->rows);
	for (unsigned k = 0; k < 100; k++, n++) {
		first[0] += tm_account_id(h, site_of(h, n), 64) != 0;
		for (unsigned times = 0; times < 64; times++)
			(void)tm_account_id(h, site_of(h, n), 64);
		first[1] += tm_account_id(h, site_of(h, n), 64) != 0;
		second[0] += tm_account_id(h, site_of(h, n + 1000), (size_t)1 << 20) != 0;
		second[1] += tm_account_id(h, site_of(h, n + 1000), 64) != 0;
	}
	tm_thread_leave(held);
	cr_assert_lt(first[0], 50, "of who asks for the first time");
	cr_assert_eq(first[1], 100, "who asks often");
	cr_assert_eq(second[0], 100, "who asks for much");
	cr_assert_eq(second[1], 100);
}
