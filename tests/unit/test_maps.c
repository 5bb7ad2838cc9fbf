/* SPDX-License-Identifier: MIT */
/* maps: what the kernel says about addresses. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/os/maps.h"
#include "shim/os/proc.h"

Test(maps, resident_pages_of_a_range_are_counted)
{
	const size_t bytes = 4 << 20;
	struct tm_maps_resident r = {1, 1};
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(p, bytes, MADV_NOHUGEPAGE);
	cr_assert_eq(tm_maps_resident((uintptr_t)p, (uintptr_t)p + bytes, &r), 0);
	cr_assert(r.resident_bytes == 0 && r.huge_bytes == 0);
	memset(p, 1, bytes / 4);
	cr_assert_eq(tm_maps_resident((uintptr_t)p, (uintptr_t)p + bytes, &r), 0);
	cr_assert_eq(r.resident_bytes, bytes / 4);
	cr_assert_eq(tm_maps_resident(1, 2, &r), 0);
	cr_assert_eq(r.resident_bytes, 0);
}

Test(maps, mappings_are_found_by_any_address)
{
	char *p = mmap(NULL, 12288, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct tm_maps_range r;

	mprotect(p + 4096, 4096, PROT_NONE);
	cr_assert_eq(tm_maps_find((uintptr_t)p + 5000, &r), 0);
	cr_assert_eq(r.start, (uintptr_t)p + 4096);
	cr_assert_eq(r.end, (uintptr_t)p + 8192);
	cr_assert_not(r.readable);
	cr_assert_eq(tm_maps_find((uintptr_t)p + 4095, &r), 0);
	cr_assert(r.readable && r.end == (uintptr_t)p + 4096);
	cr_assert_eq(tm_maps_find((uintptr_t)&r, &r), 0);
	cr_assert(r.readable);
	munmap(p + 4096, 4096);
	cr_assert_eq(tm_maps_find((uintptr_t)p + 5000, &r), -ENOENT);
	cr_assert_eq(tm_maps_find(0, &r), -ENOENT);
	cr_assert_eq(tm_maps_find(UINTPTR_MAX, &r), -ENOENT);
}

Test(maps, forbidden_files_are_not_opened)
{
	struct tm_maps_range r = {1, 2, true};
	char text[64];

	tm_proc_forbid_files();
	cr_assert_eq(tm_maps_find((uintptr_t)&r, &r), -EPERM);
	cr_assert(r.start == 1 && r.end == 2);
	cr_assert_eq(tm_proc_read("/proc/self/stat", text, sizeof(text)), -EPERM);
}
