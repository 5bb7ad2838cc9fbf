/* SPDX-License-Identifier: MIT */
/* foreign: blocks of libc's malloc are told from mistakes. Here malloc is libc's own. */
#include <criterion/criterion.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/boot.h"
#include "shim/early.h"
#include "shim/foreign.h"

static void need_plain_libc(void)
{
	cr_assert(tm_boot());
	if (tm_root.passive_reason == TM_PASSIVE_SANITIZER)
		cr_skip_test("malloc is a sanitizer's");
}

static void is_known(void *p)
{
	uint64_t wrong = tm_error_total(TM_ERROR_FOREIGN);

	cr_assert_eq(tm_foreign_usable(p), malloc_usable_size(p), "%p", p);
	tm_foreign_free(p);
	cr_assert_eq(tm_error_total(TM_ERROR_FOREIGN), wrong);
}

static void is_mistake(void *p)
{
	uint64_t wrong = tm_error_total(TM_ERROR_FOREIGN);

	errno = 77;
	tm_foreign_free(p);
	cr_assert_eq(errno, 77);
	cr_assert_eq(tm_error_total(TM_ERROR_FOREIGN), wrong + 1, "%p", p);
	cr_assert_eq(tm_foreign_usable(p), 0);
	errno = 0;
	cr_assert_null(tm_foreign_realloc(p, 100));
	cr_assert_eq(errno, ENOMEM);
	cr_assert_eq(tm_error_total(TM_ERROR_FOREIGN), wrong + 3);
}

Test(foreign, large_blocks_of_libc_go_back)
{
	void *aligned = NULL;

	need_plain_libc();
	mallopt(M_MMAP_THRESHOLD, 100000);
	for (size_t bytes = 200000; bytes < 64 << 20; bytes *= 3)
		is_known(malloc(bytes));
	for (size_t align = 32; align <= 1 << 20; align *= 2) {
		cr_assert_eq(posix_memalign(&aligned, align, 1 << 20), 0);
		is_known(aligned);
	}
}

Test(foreign, small_blocks_of_the_main_heap_go_back)
{
	unsigned found = 0;

	need_plain_libc();
	for (int i = 0; i < 4000 && found < 100; i++) {
		void *p = malloc(1 + (size_t)i % 3000);

		/* What libc took from the break before we booted is not known. */
		if ((uintptr_t)p < tm_root.brk_start + 4096)
			continue;
		is_known(p);
		cr_assert_not_null(malloc(1 + (size_t)i % 3000)); /* a neighbour in use */
		found++;
	}
	cr_assert_gt(found, 50);
}

static void *arena_of_a_thread(void *unused)
{
	for (size_t i = 0; i < 200; i++) {
		is_known(malloc(i * 37 + 1));
		cr_assert_not_null(malloc(i * 11 + 1));
	}
	return unused;
}

Test(foreign, blocks_of_other_arenas_go_back)
{
	pthread_t thread;

	need_plain_libc();
	pthread_create(&thread, NULL, arena_of_a_thread, NULL);
	pthread_join(thread, NULL);
}

Test(foreign, realloc_moves_a_block_of_libc_to_us)
{
	char *p, *q;

	need_plain_libc();
	mallopt(M_MMAP_THRESHOLD, 100000);
	p = malloc(1 << 20);
	memset(p, 7, 1 << 20);
	q = tm_foreign_realloc(p, 3 << 20);
	cr_assert_not_null(q);
	cr_assert(q[0] == 7 && q[(1 << 20) - 1] == 7);
	cr_assert_geq(tm_root.ops.usable_size(q), 3 << 20);
	tm_root.ops.free(q);
	p = malloc(1 << 20);
	cr_assert_null(tm_foreign_realloc(p, 0)); /* glibc's realloc(p, 0) frees */
}

Test(foreign, mistakes_are_counted_and_ignored)
{
	static TM_ALIGNED(16) char global[256];
	TM_ALIGNED(16) char local[256];
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *none = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *block;

	need_plain_libc();
	mallopt(M_MMAP_THRESHOLD, 100000);
	block = malloc(1 << 20);
	is_mistake(global + 16);
	is_mistake(local + 16);
	is_mistake(page);
	is_mistake(page + 16);
	is_mistake(page + 4096);
	is_mistake(none + 16);
	is_mistake(block + 16);
	is_mistake(block + 4096);
	is_mistake(block + 1);
	is_mistake((void *)16);
	is_mistake((void *)(uintptr_t)0x7fffdeadbeef0);
	is_mistake((void *)(UINTPTR_MAX - 15));
	munmap(page, 8192);
	is_mistake(page + 16);
	free(block);
}

Test(foreign, null_is_nothing)
{
	cr_assert(tm_boot());
	tm_foreign_free(NULL);
	cr_assert_eq(tm_foreign_usable(NULL), 0);
	cr_assert_eq(tm_error_total(TM_ERROR_FOREIGN), 0);
}

Test(foreign, early_blocks_move_on)
{
	char *p, *q;

	need_plain_libc();
	p = tm_early_alloc(1, 40);
	strcpy(p, "early");
	cr_assert_eq(tm_foreign_usable(p), 48);
	q = tm_foreign_realloc(p, 4000);
	cr_assert_str_eq(q, "early");
	cr_assert_not(tm_early_owns(q));
	tm_foreign_free(tm_early_alloc(1, 40));
	cr_assert_eq(tm_error_total(TM_ERROR_FOREIGN), 0);
}
