/* SPDX-License-Identifier: MIT */
/* boot: one state, one table, read-only afterwards. */
#include <criterion/criterion.h>
#include <errno.h>
#include <unistd.h>

#include "shim/boot.h"

Test(boot, everything_is_set_once_ready)
{
	cr_assert(tm_boot());
	cr_assert(tm_boot());
	cr_assert(tm_boot_is_ready());
	cr_assert_eq(tm_boot_check(), 0);
	cr_assert_geq(tm_root.page_bytes, 4096);
	cr_assert_eq(tm_root.secure, 0);
	cr_assert(tm_root.random[0] || tm_root.random[1] || tm_root.random[2] || tm_root.random[3]);
}

Test(boot, root_has_pages_of_its_own)
{
	cr_assert_eq((uintptr_t)&tm_root_pages % TM_ROOT_ALIGN, 0);
	cr_assert_eq(sizeof(tm_root_pages) % TM_ROOT_ALIGN, 0);
}

Test(boot, root_cannot_be_written)
{
	int ends[2];

	cr_assert(tm_boot());
	cr_assert_eq(pipe(ends), 0);
	cr_assert_eq(write(ends[1], "x", 1), 1);
	cr_assert_eq(read(ends[0], &tm_root_pages, 1), -1);
	cr_assert_eq(errno, EFAULT);
}
