/* SPDX-License-Identifier: MIT */
/* engine: for tests that need this process served by the engine itself. */
#ifndef TESTS_UNIT_ENGINE_H
#define TESTS_UNIT_ENGINE_H

#include <criterion/criterion.h>

#include "shim/boot.h"

/* Boots; skips the test where another allocator serves (sanitizers). */
static inline void need_engine(void)
{
	cr_assert(tm_boot());
	if (tm_root.server != TM_SERVER_ENGINE)
		cr_skip_test("the engine does not serve here");
}

#endif
