/* SPDX-License-Identifier: MIT */
/*
 * heap_fake: a kernel for the tests of shim/heap that can refuse. It counts the calls, fails the
 * n-th one or all from there on, and otherwise does what the real one does.
 */
#ifndef TM_TESTS_HEAP_FAKE_H
#define TM_TESTS_HEAP_FAKE_H

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/heap/extent.h"
#include "shim/heap/grow.h"
#include "shim/heap/large.h"
#include "shim/heap/purge.h"
#include "shim/heap/zone.h"
#include "shim/os/mem.h"

#define MIB ((size_t)1 << 20)

static struct {
	long calls;
	long maps;
	long dontneeds;
	size_t dontneed_bytes;
	size_t split_bytes; /* of these, in pieces that are not whole units */
	size_t moved_bytes;
	size_t populated_bytes;
	long fail_at; /* this call fails, 0: none */
	int fail_err;
	int fail_rest; /* and all after it */
	int dontneed_err;
} kernel TM_UNUSED;

static int kernel_refuses(void)
{
	kernel.calls++;
	if (!kernel.fail_at)
		return 0;
	if (kernel.calls == kernel.fail_at || (kernel.fail_rest && kernel.calls > kernel.fail_at))
		return kernel.fail_err ? kernel.fail_err : -ENOMEM;
	return 0;
}

static int fake_map_at(void *at, size_t bytes, int prot)
{
	int err = kernel_refuses();

	kernel.maps++;
	return err ? err : tm_mem_map_at(at, bytes, prot);
}

static int fake_map_fixed(void *at, size_t bytes, int prot)
{
	int err = kernel_refuses();

	return err ? err : tm_mem_map_fixed(at, bytes, prot);
}

static int fake_unmap(void *at, size_t bytes)
{
	int err = kernel_refuses();

	return err ? err : tm_mem_unmap(at, bytes);
}

static int fake_dontneed(void *at, size_t bytes)
{
	int err = kernel_refuses();

	kernel.dontneeds++;
	if (kernel.dontneed_err)
		return kernel.dontneed_err;
	if (!err) {
		kernel.dontneed_bytes += bytes;
		kernel.split_bytes += bytes % TM_UNIT_BYTES;
	}
	return err ? err : tm_mem_dontneed(at, bytes);
}

static int fake_hugepage(void *at, size_t bytes)
{
	int err = kernel_refuses();

	return err ? err : tm_mem_hugepage(at, bytes);
}

static int fake_nohugepage(void *at, size_t bytes)
{
	int err = kernel_refuses();

	return err ? err : tm_mem_nohugepage(at, bytes);
}

static void *fake_remap(void *old, size_t old_bytes, size_t new_bytes, void *to)
{
	return kernel_refuses() ? NULL : tm_mem_remap(old, old_bytes, new_bytes, to);
}

static int fake_extend(void *at, size_t old_bytes, size_t new_bytes)
{
	int err = kernel_refuses();

	return err ? err : tm_mem_extend(at, old_bytes, new_bytes);
}

static int fake_move(void *from, size_t bytes, void *to)
{
	int err = kernel_refuses();

	if (!err)
		err = tm_mem_move(from, bytes, to);
	if (!err)
		kernel.moved_bytes += bytes;
	return err;
}

static int fake_populate(void *at, size_t bytes)
{
	int err = kernel_refuses();

	kernel.populated_bytes += err ? 0 : bytes;
	return err ? err : tm_mem_populate_write(at, bytes);
}

static const struct tm_zone_os fake_os = {
	.map_at = fake_map_at,
	.map_fixed = fake_map_fixed,
	.unmap = fake_unmap,
	.dontneed = fake_dontneed,
	.hugepage = fake_hugepage,
	.nohugepage = fake_nohugepage,
	.remap = fake_remap,
	.extend = fake_extend,
	.move = fake_move,
	.populate = fake_populate,
};

/* A zone of its own for the test, on the kernel that can refuse. */
static TM_UNUSED void heap_fresh(void)
{
	tm_zone.os = &fake_os;
	memset(&kernel, 0, sizeof(kernel));
	tm_zone_clear();
	tm_extent_clear();
	tm_grow_clear();
	cr_assert_eq(tm_zone_init(), 0);
	memset(&kernel, 0, sizeof(kernel));
}

static TM_UNUSED void heap_check(void)
{
	const char *broken = tm_zone_check();

	for (int i = 0; !broken && i < TM_PART_COUNT; i++)
		if (i != TM_PART_GROW)
			broken = tm_extent_check((enum tm_part)i);
	if (!broken)
		broken = tm_grow_check();
	if (!broken)
		broken = tm_large_check();
	cr_assert(broken == NULL, "%s", broken);
}

static TM_UNUSED uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static TM_UNUSED struct tm_part_stats stats_of(enum tm_part part)
{
	struct tm_part_stats st;

	tm_extent_stats(part, &st);
	return st;
}

#endif
