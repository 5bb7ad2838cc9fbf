/* SPDX-License-Identifier: MIT */
/* own: which mappings are the library's. */
#include <criterion/criterion.h>

#include "shim/os/mem.h"
#include "shim/os/own.h"

static bool next(uintptr_t *at, uintptr_t end, uintptr_t *ret_end)
{
	return tm_own_next(at, end, ret_end);
}

Test(own, mappings_that_adjoin_are_one_and_may_go_in_parts)
{
	const uintptr_t at = (uintptr_t)1 << 40;
	uintptr_t from = at - 4096, end = 0;

	tm_own_add(at + 8192, 4096);
	tm_own_add(at + 4096, 4096);
	tm_own_add(at + 12288, 4096);
	cr_assert(next(&from, at + 65536, &end) && from == at + 4096 && end == at + 16384);
	tm_own_drop(at + 8192, 4096);
	from = at;
	cr_assert(next(&from, at + 65536, &end) && from == at + 4096 && end == at + 8192);
	from = end;
	cr_assert(next(&from, at + 65536, &end) && from == at + 12288 && end == at + 16384);
	from = at + 13000;
	cr_assert(next(&from, at + 14000, &end) && from == at + 13000 && end == at + 14000);
	tm_own_drop(at, 65536);
	from = at;
	cr_assert_not(next(&from, at + 65536, &end));
}

Test(own, what_is_mapped_anywhere_is_known_until_it_goes)
{
	char *p = tm_mem_map(65536);
	uintptr_t from = (uintptr_t)p, end = 0;

	cr_assert(next(&from, (uintptr_t)p + 65536, &end) && from == (uintptr_t)p);
	cr_assert_eq(end, (uintptr_t)p + 65536);
	tm_mem_unmap_raw(p, 65536);
	from = (uintptr_t)p;
	cr_assert_not(next(&from, (uintptr_t)p + 65536, &end));
}

Test(own, a_thousand_are_forgotten_not_confused)
{
	const uintptr_t at = (uintptr_t)1 << 41;
	uintptr_t from = at, end = 0;

	for (uintptr_t i = 0; i < 1000; i++)
		tm_own_add(at + i * 65536, 4096);
	cr_assert(next(&from, at + 65536, &end) && from == at && end == at + 4096);
	for (uintptr_t i = 0; i < 1000; i++)
		tm_own_drop(at + i * 65536, 65536);
	from = at;
	cr_assert_not(next(&from, at + 1000 * 65536, &end));
}
