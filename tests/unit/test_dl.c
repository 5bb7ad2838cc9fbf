/* SPDX-License-Identifier: MIT */
/* dl: tables of names, and what becomes of dlopen's flags. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

#include "shim/dl.h"
#include "tests/unit/engine.h"

static int wrapped;

static void *answer(const char *name, void *found)
{
	cr_assert_not_null(name);
	cr_assert_not_null(found);
	return &wrapped;
}

Test(dl, registered_names_are_answered_others_pass)
{
	static const struct tm_dl_entry table[] = {{"getenv", answer}, {"tm_no_such_name", answer}};
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

	need_engine();
	cr_assert_eq(tm_dl_answer(libc, "getenv", NULL), TM_DL_PASS);
	cr_assert_eq(tm_dl_register(table, 2), 0);
	cr_assert_eq(tm_dl_answer(libc, "getenv", NULL), (void *)&wrapped);
	cr_assert_eq(tm_dl_answer(libc, "getenv_", NULL), TM_DL_PASS);
	cr_assert_eq(tm_dl_answer(libc, "getpid", NULL), TM_DL_PASS);
	cr_assert_eq(tm_dl_answer(libc, "", NULL), TM_DL_PASS);
	cr_assert_eq(tm_dl_answer(RTLD_DEFAULT, "getenv", NULL), TM_DL_PASS);
	/* What the real function does not find is not found. */
	cr_assert_null(tm_dl_answer(libc, "tm_no_such_name", NULL));
	cr_assert_not_null(dlerror());
}

Test(dl, next_of_a_table_name_is_answered)
{
	static const struct tm_dl_entry table[] = {{"getenv", answer}};

	need_engine();
	cr_assert_eq(tm_dl_register(table, 1), 0);
	cr_assert_eq(tm_dl_answer(RTLD_NEXT, "getenv", (void *)(uintptr_t)need_engine),
		     (void *)&wrapped);
	cr_assert_eq(tm_dl_answer(RTLD_NEXT, "getpid", (void *)(uintptr_t)need_engine), TM_DL_PASS);
	/* A caller that nobody knows is left to the real function. */
	cr_assert_eq(tm_dl_answer(RTLD_NEXT, "getenv", NULL), TM_DL_PASS);
}

Test(dl, a_full_table_takes_nothing)
{
	static struct tm_dl_entry many[TM_DL_ENTRIES];
	static char name[TM_DL_ENTRIES][12];

	need_engine();
	for (size_t i = 0; i < TM_DL_ENTRIES; i++) {
		snprintf(name[i], sizeof(name[i]), "tm_%zu", i);
		many[i] = (struct tm_dl_entry){name[i], answer};
	}
	cr_assert_eq(tm_dl_register(many, TM_DL_ENTRIES + 1), -ENOSPC);
	cr_assert_eq(tm_dl_register(many, TM_DL_ENTRIES), 0);
	cr_assert_eq(tm_dl_register(many, 1), -ENOSPC);
	for (size_t i = 0; i < TM_DL_ENTRIES; i++)
		cr_assert_null(tm_dl_answer(dlopen(NULL, RTLD_NOW), name[i], NULL));
}

Test(dl, deepbind_is_dropped_alone)
{
	need_engine();
	cr_assert_eq(tm_dl_open_flags("lib.so", RTLD_NOW | RTLD_DEEPBIND), RTLD_NOW);
	cr_assert_eq(tm_dl_open_flags(NULL, RTLD_LAZY | RTLD_GLOBAL | RTLD_DEEPBIND),
		     RTLD_LAZY | RTLD_GLOBAL);
	cr_assert_eq(tm_dl_open_flags("lib.so", RTLD_NOW | RTLD_LOCAL), RTLD_NOW | RTLD_LOCAL);
}
