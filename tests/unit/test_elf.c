/* SPDX-License-Identifier: MIT */
/* elf: lookups in the loader's tables agree with the loader's own. */
#include <criterion/criterion.h>
#include <dlfcn.h>

#include "shim/elf.h"

/* Defined here and exported by the program, as an interposer does. */
int tm_test_elf_marker(void);
int tm_test_elf_marker(void)
{
	return 1;
}

Test(elf, libc_is_found_and_agrees_with_dlsym)
{
	static const char *const names[] = {"malloc",  "free",    "dlopen", "dlsym", "exit",
					    "madvise", "environ", "getenv", "qsort", "fork"};
	struct tm_elf_object libc;
	void *handle = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

	cr_assert(tm_elf_libc(&libc));
	cr_assert_not_null(handle);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		cr_assert_eq((void *)tm_elf_find(&libc, names[i]), dlsym(handle, names[i]), "%s",
			     names[i]);
}

Test(elf, unknown_and_indirect_names_are_0)
{
	struct tm_elf_object libc;

	cr_assert(tm_elf_libc(&libc));
	cr_assert_eq(tm_elf_find(&libc, "tm_no_such_name"), 0);
	cr_assert_eq(tm_elf_find(&libc, ""), 0);
	cr_assert_eq(tm_elf_next("tm_no_such_name"), 0);
	cr_assert_eq(tm_elf_first("tm_no_such_name"), 0);
	cr_assert_eq(tm_elf_anywhere("tm_no_such_name", NULL), 0);
}

Test(elf, next_is_behind_us)
{
	struct tm_elf_object self, where;
	void *libc_getenv = dlsym(RTLD_NEXT, "getenv");

	cr_assert(tm_elf_self(&self));
	cr_assert_eq((void *)tm_elf_next("getenv"), libc_getenv);
	cr_assert_eq(tm_elf_next("tm_test_elf_marker"), 0);
	cr_assert_eq(tm_elf_anywhere("tm_test_elf_marker", NULL), 0);
	cr_assert_eq((void *)tm_elf_next_after((uintptr_t)tm_test_elf_marker, "getenv", &where),
		     libc_getenv);
	/* Nobody is behind libc with it, and no object holds address 1. */
	cr_assert_eq(tm_elf_next_after((uintptr_t)libc_getenv, "getenv", &where), 0);
	cr_assert_eq(tm_elf_next_after(1, "getenv", &where), 0);
}

Test(elf, local_libraries_are_searched_too)
{
	struct tm_elf_object where;
	void *handle = dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL);
	uintptr_t found;

	if (handle == NULL)
		cr_skip_test("no libresolv");
	found = tm_elf_anywhere("ns_get16", &where);
	if (found != 0) {
		cr_assert_eq((void *)found, dlsym(handle, "ns_get16"));
		cr_assert_eq(tm_elf_find(&where, "ns_get16"), found);
	}
}

Test(elf, functions_are_called_through_copied_addresses)
{
	int (*pid)(void) = NULL;

	TM_ELF_FUNCTION(tm_elf_next("getpid"), &pid);
	cr_assert_not_null(pid);
	cr_assert_gt(pid(), 0);
}
