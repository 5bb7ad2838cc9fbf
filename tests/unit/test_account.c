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
			unsigned now = tm_account_id(held.heap, site_of(held.heap, n));

			cr_assert_neq(now, 0);
			cr_assert(round == 0 || now == id[n], "site %u", n);
			id[n] = now;
		}
	for (unsigned n = 0; n < SITES; n++) {
		struct tm_site site = site_of(held.heap, n);

		if (is_at_home(held.heap, site))
			continue;
		away++;
		cr_assert_eq(tm_account_id(held.heap, site), id[n]);
		cr_assert(is_at_home(held.heap, site), "site %u", n);
	}
	for (unsigned n = 0; n < SITES; n++)
		cr_assert_eq(tm_account_id(held.heap, site_of(held.heap, n)), id[n]);
	tm_thread_leave(held);
	cr_assert_neq(away, 0, "nothing was tested");
}
