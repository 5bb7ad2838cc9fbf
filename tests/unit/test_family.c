/* SPDX-License-Identifier: MIT */
/* family: alignment rules and statistics are glibc's. */
#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "shim/family.h"
#include "tests/unit/engine.h"

Test(family, memalign_rounds_strange_alignments_up)
{
	static const struct {
		size_t asked, given;
	} table[] = {{0, 16},  {1, 16},  {3, 16},    {8, 16},      {17, 32},     {24, 32},
		     {48, 64}, {64, 64}, {100, 128}, {4096, 4096}, {4097, 8192}, {65536, 65536}};

	need_engine();
	for (size_t i = 0; i < TM_ARRAY_LEN(table); i++) {
		void *p = tm_family_memalign(table[i].asked, 100);
		void *q = tm_family_aligned_alloc(table[i].asked, 100);

		cr_assert(p != NULL && q != NULL);
		cr_assert_eq(((uintptr_t)p | (uintptr_t)q) % table[i].given, 0, "%zu",
			     table[i].asked);
		tm_root.ops.free(p);
		tm_root.ops.free(q);
	}
	errno = 0;
	cr_assert_null(tm_family_memalign(SIZE_MAX / 2 + 2, 1));
	cr_assert_eq(errno, EINVAL);
	errno = 0;
	cr_assert_null(tm_family_memalign(4096, SIZE_MAX - 4096));
	cr_assert_eq(errno, ENOMEM);
}

Test(family, posix_memalign_wants_powers_of_two_of_words)
{
	for (size_t align = 0; align < 300; align++)
		cr_assert_eq(tm_family_check_posix_align(align),
			     align >= 8 && (align & (align - 1)) == 0 ? 0 : EINVAL, "%zu", align);
}

Test(family, whole_pages)
{
	void *p;

	need_engine();
	p = tm_family_pvalloc(1, tm_family_memalign);
	cr_assert(p != NULL && (uintptr_t)p % tm_root.page_bytes == 0);
	cr_assert_geq(tm_root.ops.usable_size(p), tm_root.page_bytes);
	memset(p, 1, tm_root.page_bytes);
	tm_root.ops.free(p);
	p = tm_family_valloc(0);
	cr_assert(p != NULL && (uintptr_t)p % tm_root.page_bytes == 0);
	tm_root.ops.free(p);
	errno = 0;
	cr_assert_null(tm_family_pvalloc(SIZE_MAX, tm_family_memalign));
	cr_assert_eq(errno, ENOMEM);
}

Test(family, reallocarray_keeps_the_block_on_overflow)
{
	char *p;

	need_engine();
	p = tm_family_reallocarray(NULL, 10, 10, tm_root.ops.realloc);
	strcpy(p, "kept");
	errno = 0;
	cr_assert_null(tm_family_reallocarray(p, SIZE_MAX / 2, 3, tm_root.ops.realloc));
	cr_assert_eq(errno, ENOMEM);
	cr_assert_str_eq(p, "kept");
	tm_root.ops.free(p);
}

Test(family, mallinfo_shows_large_blocks_and_saturates)
{
	const size_t bytes = (size_t)3 << 30;
	struct tm_family_info before, after;
	struct mallinfo small;
	void *p;

	need_engine();
	before = tm_family_mallinfo2();
	p = tm_root.ops.malloc(bytes);
	if (p == NULL)
		cr_skip_test("no 3 GiB of addresses");
	after = tm_family_mallinfo2();
	small = tm_family_mallinfo();
	cr_assert_geq(after.hblkhd, before.hblkhd + bytes);
	cr_assert_eq(after.hblks, before.hblks + 1);
	cr_assert_eq(after.arena, after.uordblks + after.fordblks);
	cr_assert_eq(small.hblkhd, INT_MAX);
	tm_root.ops.free(p);
	cr_assert_eq(tm_family_mallinfo2().hblks, before.hblks);
}

Test(family, mallopt_accepts_what_glibc_accepts)
{
	need_engine();
	cr_assert_eq(tm_family_mallopt(M_ARENA_MAX, 1), 1);
	cr_assert_eq(tm_family_mallopt(M_TRIM_THRESHOLD, 0), 1);
	cr_assert_eq(tm_family_mallopt(M_MMAP_THRESHOLD, 4096), 1);
	cr_assert_eq(tm_family_mallopt(M_MXFAST, 64), 1);
	cr_assert_eq(tm_family_mallopt(M_MXFAST, 1 << 20), 0);
}

Test(family, malloc_info_is_whole_xml)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *f = open_memstream(&text, &bytes);

	need_engine();
	cr_assert_eq(tm_family_malloc_info(1, f), EINVAL);
	cr_assert_eq(tm_family_malloc_info(0, f), 0);
	fclose(f);
	cr_assert_eq(strncmp(text, "<malloc version=\"1\">\n<heap nr=\"0\">\n<sizes>\n", 43), 0);
	cr_assert_str_eq(text + bytes - 10, "</malloc>\n");
	cr_assert_not_null(strstr(text, "<system type=\"current\" size=\""));
	cr_assert_not_null(strstr(text, "<aspace type=\"mprotect\" size=\""));
	free(text);
}
