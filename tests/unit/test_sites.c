/* SPDX-License-Identifier: MIT */
/* sites and lifetime: records of call sites in lent memory, and what frees teach them. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>

#include "policies/lifetime.h"
#include "policies/sites.h"

static struct tm_sites sites;

static uint16_t enter(uintptr_t address)
{
	return tm_sites_enter(&sites,
			      &(struct tm_site_birth){.key = tm_sites_key_coarse(address, false),
						      .return_address = address});
}

static void begin(void)
{
	tm_sites_init(&sites, calloc(1, TM_SITES_BYTES));
}

Test(sites, a_key_has_one_record)
{
	begin();
	for (uintptr_t a = 1; a < 20000; a++)
		cr_assert_eq(enter(a * 16), enter(a * 16));
	cr_assert_eq(atomic_load(&sites.used), 19999);
	for (uintptr_t a = 1; a < 20000; a++) {
		uint16_t at = tm_sites_find(&sites, tm_sites_key_coarse(a * 16, false));

		cr_assert_neq(at, 0);
		cr_assert_eq(sites.record[at].return_address, a * 16);
	}
	cr_assert_eq(tm_sites_find(&sites, tm_sites_key_coarse(7, false)), 0);
}

Test(sites, the_table_stops_before_it_is_full)
{
	begin();
	uint32_t refused = 0;
	for (uintptr_t a = 1; a < 70000; a++)
		refused += enter(a * 16) == 0;
	cr_assert_eq(atomic_load(&sites.used), TM_SITES_LIMIT);
	cr_assert_eq(refused, 69999 - TM_SITES_LIMIT);
	cr_assert_neq(enter(16), 0, "known sites stay known");
}

Test(sites, keys_of_different_levels_and_sizes_differ)
{
	uint64_t fine = tm_sites_key_fine(0x1000, 3, false);

	cr_assert_neq(fine, 0);
	cr_assert_neq(fine, tm_sites_key_coarse(0x1000, false));
	cr_assert_neq(fine, tm_sites_key_fine(0x1000, 4, false));
	cr_assert_neq(fine, tm_sites_key_fine(0x1000, 3, true));
	cr_assert_neq(tm_sites_key_coarse(0x1000, true), tm_sites_key_coarse(0x1000, false));
	cr_assert_neq(tm_sites_key_sized(fine, 1), tm_sites_key_sized(fine, 2));
	cr_assert_neq(tm_sites_key_sized(fine, 0), fine);
}

Test(sites, what_is_withdrawn_is_not_found_and_others_are)
{
	begin();
	for (uintptr_t a = 1; a <= 1000; a++)
		enter(a * 16);
	tm_sites_forget(&sites, 0, 500 * 16);
	for (uintptr_t a = 1; a <= 1000; a++)
		cr_assert_eq(tm_sites_find(&sites, tm_sites_key_coarse(a * 16, false)) != 0,
			     a > 500);
	cr_assert_eq(atomic_load(&sites.generation), 1);
	cr_assert_neq(enter(16), 0, "the address may be used again");
}

static void *enter_all(void *unused)
{
	(void)unused;
	for (int round = 0; round < 20; round++) {
		for (uintptr_t a = 1; a < 3000; a++)
			enter(a * 16);
	}
	return NULL;
}

Test(sites, threads_agree_on_records)
{
	pthread_t thread[4];

	begin();
	for (int i = 0; i < 4; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, enter_all, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	cr_assert_eq(atomic_load(&sites.used), 2999);
	uint32_t filled = 0;
	for (uint32_t at = 1; at < tm_sites_end(&sites); at++)
		filled += atomic_load(&sites.record[at].key) != 0;
	cr_assert_eq(filled, 2999, "no key stands twice");
}

Test(lifetime, ages_wrap_and_stay_small)
{
	cr_assert_eq(tm_lifetime_age(0, 0), 0);
	cr_assert_eq(tm_lifetime_age(128, 127), 1);
	cr_assert_eq(tm_lifetime_age(1000, 1000 & 0x7f), 0);
	cr_assert_eq(tm_lifetime_age(1003, 1000 & 0x7f), 3);
}

Test(lifetime, time_makes_epochs)
{
	struct tm_lifetime_epoch e = {0};

	tm_lifetime_tick(&e, 10000);
	cr_assert_eq(tm_lifetime_now(&e), 0, "the first look only sets the mark");
	tm_lifetime_tick(&e, 10000 + TM_LIFETIME_EPOCH_MS - 1);
	cr_assert_eq(tm_lifetime_now(&e), 0);
	tm_lifetime_tick(&e, 10000 + TM_LIFETIME_EPOCH_MS);
	cr_assert_eq(tm_lifetime_now(&e), 1);
	tm_lifetime_tick(&e, 10000 + 11 * TM_LIFETIME_EPOCH_MS);
	cr_assert_eq(tm_lifetime_now(&e), 11, "silence is as long as it was");
	tm_lifetime_tick(&e, 5);
	cr_assert_eq(tm_lifetime_now(&e), 11, "a clock that goes back is not followed");
}

Test(lifetime, a_parent_learns_what_its_children_see)
{
	begin();
	uint16_t coarse = enter(0x1000);
	struct tm_site_birth birth = {.key = tm_sites_key_fine(0x1000, 1, false),
				      .return_address = 0x1000,
				      .height = 1,
				      .parent = coarse,
				      .level = TM_SITE_FINE};
	uint16_t fine = tm_sites_enter(&sites, &birth);

	tm_lifetime_born(&sites, fine, 0, 3);
	tm_lifetime_learn(&sites, fine, 0, 2);
	cr_assert_eq(tm_lifetime_belief(&sites.record[fine]), TM_TIER_TEMPORARY);
	cr_assert_eq(tm_lifetime_belief(&sites.record[coarse]), TM_TIER_TEMPORARY);
	cr_assert_eq(atomic_load(&sites.record[coarse].born), 3);
}

Test(lifetime, what_stays_among_what_dies_makes_a_site_mixed)
{
	begin();
	uint16_t at = enter(0x1000);
	tm_lifetime_born(&sites, at, 0, 40);
	tm_lifetime_learn(&sites, at, 0, 35);
	cr_assert_not(tm_lifetime_is_mixed(&sites.record[at]), "5 of 40 live");
	tm_lifetime_born(&sites, at, 0, 10);
	tm_lifetime_learn(&sites, at, 0, 1);
	cr_assert(tm_lifetime_is_mixed(&sites.record[at]), "14 of 50 live");
}

Test(lifetime, counts_stay_bounded_and_keep_what_lives)
{
	begin();
	uint16_t at = enter(0x1000);
	for (int i = 0; i < 100000; i++) {
		tm_lifetime_born(&sites, at, 0, 1);
		if (i >= 10)
			tm_lifetime_learn(&sites, at, 0, 1);
	}
	uint32_t frees =
		atomic_load(&sites.record[at].shorts) + atomic_load(&sites.record[at].longs);
	cr_assert(frees <= 5000);
	cr_assert_eq(atomic_load(&sites.record[at].born) - frees, 10);
	cr_assert(atomic_load(&sites.record[at].steady));
}
