/* SPDX-License-Identifier: MIT */
/* early: the static memory of the time before the engine. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "shim/early.h"

Test(early, blocks_are_aligned_zeroed_and_apart)
{
	unsigned char *last = NULL;

	for (size_t align = 1; align <= 4096; align *= 2) {
		unsigned char *p = tm_early_alloc(align, 40);

		cr_assert_not_null(p);
		cr_assert_eq((uintptr_t)p % (align < 16 ? 16 : align), 0, "align %zu", align);
		cr_assert(tm_early_owns(p) && tm_early_owns(p + 39));
		cr_assert(last == NULL || p >= last + 40);
		for (size_t i = 0; i < 40; i++)
			cr_assert_eq(p[i], 0);
		memset(p, 0xff, 40);
		cr_assert_eq(tm_early_usable(p), 48);
		cr_assert_eq(tm_early_check(), 0);
		last = p;
	}
}

Test(early, last_block_is_taken_back_and_zeroed)
{
	unsigned char *a = tm_early_alloc(1, 100), *b, *c;

	memset(a, 0xff, 100);
	tm_early_free(a);
	b = tm_early_alloc(1, 100);
	cr_assert_eq(b, a);
	cr_assert_eq(b[0] | b[99], 0);
	c = tm_early_alloc(1, 10);
	memset(b, 0xff, 100);
	tm_early_free(b); /* not the last one: it stays */
	cr_assert_neq(tm_early_alloc(1, 100), (void *)a);
	cr_assert_eq(tm_early_usable(c), 16);
	cr_assert_eq(tm_early_check(), 0);
}

Test(early, what_is_no_block_is_ignored)
{
	unsigned char *p = tm_early_alloc(1, 64);

	cr_assert_eq(tm_early_usable(p + 16), 0);
	cr_assert_eq(tm_early_usable(p + 1), 0);
	cr_assert_eq(tm_early_usable(tm_early_area), 0);
	tm_early_free(p + 16);
	tm_early_free(p);
	tm_early_free(p); /* twice */
	cr_assert_eq(tm_early_check(), 0);
	cr_assert_not(tm_early_owns(&p));
	cr_assert_not(tm_early_owns(tm_early_area + TM_EARLY_BYTES));
}

Test(early, full_area_refuses)
{
	size_t got = 0;

	cr_assert_null(tm_early_alloc(1, SIZE_MAX));
	cr_assert_null(tm_early_alloc(SIZE_MAX / 2 + 1, 1));
	cr_assert_null(tm_early_alloc(1, TM_EARLY_BYTES));
	while (tm_early_alloc(1, 1000) != NULL)
		got++;
	cr_assert_eq(got, TM_EARLY_BYTES / 1024);
	cr_assert_eq(tm_early_check(), 0);
}

static void *take_many(void *arg)
{
	uintptr_t mark = (uintptr_t)arg;

	for (int i = 0; i < 100; i++) {
		uintptr_t *p = tm_early_alloc(1, 64);

		if (p == NULL)
			return p;
		for (int k = 0; k < 8; k++)
			p[k] = mark;
		for (int k = 0; k < 8; k++)
			cr_assert_eq(p[k], mark);
	}
	return arg;
}

Test(early, threads_get_different_blocks)
{
	pthread_t thread[4];

	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, take_many, (void *)(i + 1));
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	cr_assert_eq(tm_early_check(), 0);
}
