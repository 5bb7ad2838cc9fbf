/* SPDX-License-Identifier: MIT */
/* annex: what a trim costs follows from what was freed. */
#include <criterion/criterion.h>

#include "shim/alloc.h"
#include "shim/heap/annex.h"
#include "shim/heap/size_class.h"
#include "tests/unit/engine.h"

#define SLOTS 20000u
#define SLOT_BYTES ((size_t)1500)
#define ROUNDS 2000u
/* Slots of the annex that a trim may look at for one that was freed, and at the beginning. */
#define LOOKS_A_FREE 32u

static void *slot[SLOTS];

static void *take(void)
{
	return tm_annex_take(TM_TIER_SESSION, tm_class_of_medium(SLOT_BYTES), SLOT_BYTES,
			     (struct tm_site){0, 0});
}

Test(annex, trims_again_and_again_look_at_what_changed)
{
	struct tm_heap *h;
	uint64_t looks;

	need_engine();
	for (unsigned i = 0; i < SLOTS; i++)
		cr_assert_not_null(slot[i] = take());
	h = (struct tm_heap *)(tm_granule_owner(tm_zone_granule(slot[0])) & ~TM_OWNER_BITS);
	cr_assert(tm_annex_is(h));
	/* holes everywhere, and no page is free */
	for (unsigned i = 0; i < SLOTS; i += 2)
		tm_root.ops.free(slot[i]);
	tm_alloc_trim();
	cr_assert_gt(h->trim_rest, SLOTS / 4);
	looks = h->trim_looks;
	for (unsigned i = 0; i < ROUNDS; i++) {
		void *p = take();

		cr_assert_not_null(p);
		tm_root.ops.free(p);
		tm_alloc_trim();
	}
	cr_assert_leq(h->trim_looks - looks, ROUNDS * LOOKS_A_FREE, "%zu",
		      (size_t)(h->trim_looks - looks));
	/* what is worth a look gets it */
	for (unsigned i = 1; i < SLOTS; i += 2)
		tm_root.ops.free(slot[i]);
	cr_assert_gt(tm_alloc_trim(), SLOTS * SLOT_BYTES / 2);
	cr_assert_lt(h->trim_rest, SLOTS / 4);
}
