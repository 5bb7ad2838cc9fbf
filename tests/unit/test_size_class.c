/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "shim/heap/size_class.h"

Test(size_class, every_size_gets_the_smallest_class_that_holds_it)
{
	for (size_t size = 1; size <= TM_SLOT_MAX; size++) {
		unsigned klass = tm_class_of(size);

		cr_assert_lt(klass, TM_CLASSES);
		cr_assert_geq(tm_class_bytes(klass), size, "size %zu", size);
		cr_assert(klass == 1 || tm_class_bytes(klass - 1) < size, "size %zu", size);
	}
}

Test(size_class, the_last_class_fills_a_granule)
{
	cr_assert_eq(tm_class_bytes(TM_SOLO_CLASS), TM_GRANULE_BYTES);
	cr_assert_eq(tm_class_of(TM_SOLO_ABOVE + 1), TM_SOLO_CLASS);
	cr_assert_eq(tm_class_of(TM_SOLO_ABOVE), TM_SOLO_CLASS - 1);
}

Test(size_class, index_is_exact_at_every_offset_of_every_class)
{
	for (unsigned klass = 1; klass < TM_CLASSES; klass++) {
		const struct tm_class_shape *s = &tm_class_shape[klass];
		unsigned shift =
			klass < TM_SMALL_CLASSES ? TM_RECIP_SHIFT_SMALL : TM_RECIP_SHIFT_MEDIUM;

		for (size_t at = 0; at < (size_t)s->granules * TM_GRANULE_BYTES; at++) {
			uint64_t want = at % s->slot_bytes == 0 ? at / s->slot_bytes : TM_NO_INDEX;

			if (tm_class_index(at, s->recip, shift) != want)
				cr_assert_fail("class %u offset %zu", klass, at);
		}
	}
}
