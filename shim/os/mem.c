/* SPDX-License-Identifier: MIT */
/* mem: see mem.h. Owns tm_mem_release_ops. */
#include "shim/os/mem.h"

#include <errno.h>
#include <stdatomic.h>

#include "shim/os/own.h"
#include "shim/os/sys.h"

/* Headers of the oldest libc we build on lack the newer advices. */
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#define MADV_KEEPONFORK 19
#endif
#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MAP_HUGE_SHIFT
#define MAP_HUGE_SHIFT 26
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define MAP_OURS (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

struct tm_mem_release_ops tm_mem_release_ops;

TM_AT_START_CODE void tm_mem_use_libc(struct tm_mem_release_ops ops)
{
	tm_mem_release_ops = ops;
}

static int map_exactly(void *at, size_t bytes, int prot, int flags)
{
	long got = tm_sys_mmap(at, bytes, prot, flags | MAP_FIXED_NOREPLACE, -1, 0);

	if (tm_sys_is_error(got))
		return (int)got;
	if (got != tm_sys_ptr(at)) {
		/* a kernel without the flag took the address as a hint */
		tm_sys_munmap((void *)got, bytes);
		return -EEXIST;
	}
	return 0;
}

TM_AT_START_CODE int tm_mem_map_at(void *at, size_t bytes, int prot)
{
	return map_exactly(at, bytes, prot, MAP_OURS);
}

int tm_mem_map_hugetlb(void *at, size_t bytes, unsigned page_shift)
{
	/*
	 * reserves the pages now (no MAP_NORESERVE): else a touch raises SIGBUS if the pool is
	 * empty
	 */
	return map_exactly(at, bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB |
				   (int)(page_shift << MAP_HUGE_SHIFT));
}

int tm_mem_map_fixed(void *at, size_t bytes, int prot)
{
	long got = tm_sys_mmap(at, bytes, prot, MAP_OURS | MAP_FIXED, -1, 0);

	return tm_sys_is_error(got) ? (int)got : 0;
}

TM_AT_START_CODE void *tm_mem_map(size_t bytes)
{
	long got = tm_sys_mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_OURS, -1, 0);

	if (tm_sys_is_error(got))
		return NULL;
	tm_own_add((uintptr_t)got, bytes);
	return (void *)got;
}

void *tm_mem_once(void *_Atomic *at, size_t bytes)
{
	void *known = atomic_load_explicit(at, memory_order_acquire);
	void *mine;

	if (TM_LIKELY(known != NULL))
		return known;
	mine = tm_mem_map(bytes);
	if (mine == NULL || atomic_compare_exchange_strong(at, &known, mine))
		return mine;
	(void)tm_mem_unmap_raw(mine, bytes);
	return known;
}

TM_AT_START_CODE int tm_mem_protect(void *at, size_t bytes, int prot)
{
	return tm_sys_mprotect(at, bytes, prot);
}

int tm_mem_unmap_raw(void *at, size_t bytes)
{
	tm_own_drop((uintptr_t)at, bytes);
	return tm_sys_munmap(at, bytes);
}

int tm_mem_dontneed_raw(void *at, size_t bytes)
{
	return tm_sys_madvise(at, bytes, MADV_DONTNEED);
}

TM_AT_START_CODE int tm_mem_unmap(void *at, size_t bytes)
{
	int saved, err;

	tm_own_drop((uintptr_t)at, bytes);
	if (tm_mem_release_ops.munmap == NULL)
		return tm_sys_munmap(at, bytes);
	saved = errno;
	err = tm_mem_release_ops.munmap(at, bytes) == 0 ? 0 : -errno;
	errno = saved;
	return err;
}

int tm_mem_dontneed(void *at, size_t bytes)
{
	int saved, err;

	if (tm_mem_release_ops.madvise == NULL)
		return tm_mem_dontneed_raw(at, bytes);
	saved = errno;
	err = tm_mem_release_ops.madvise(at, bytes, MADV_DONTNEED) == 0 ? 0 : -errno;
	errno = saved;
	return err;
}

int tm_mem_hugepage(void *at, size_t bytes)
{
	return tm_sys_madvise(at, bytes, MADV_HUGEPAGE);
}

int tm_mem_nohugepage(void *at, size_t bytes)
{
	return tm_sys_madvise(at, bytes, MADV_NOHUGEPAGE);
}

int tm_mem_pageout(void *at, size_t bytes)
{
	return tm_sys_madvise(at, bytes, MADV_PAGEOUT);
}

int tm_mem_collapse(void *at, size_t bytes)
{
	return tm_sys_madvise(at, bytes, MADV_COLLAPSE);
}

int tm_mem_populate_write(void *at, size_t bytes)
{
	return tm_sys_madvise(at, bytes, MADV_POPULATE_WRITE);
}

int tm_mem_populate_read(void *at, size_t bytes)
{
	return tm_sys_madvise(at, bytes, MADV_POPULATE_READ);
}

TM_AT_START_CODE int tm_mem_wipeonfork(void *at, size_t bytes)
{
	return tm_sys_madvise(at, bytes, MADV_WIPEONFORK);
}

int tm_mem_keeponfork(void *at, size_t bytes)
{
	return tm_sys_madvise(at, bytes, MADV_KEEPONFORK);
}

int tm_mem_dontdump(void *at, size_t bytes)
{
	return tm_sys_madvise(at, bytes, MADV_DONTDUMP);
}

/* The pages leave their address, so interposers of mremap must see it. */
static long leave(void *at, size_t old_bytes, size_t new_bytes, int flags, void *to)
{
	int saved = errno;
	void *got;
	long rc;

	if (tm_mem_release_ops.mremap == NULL)
		return tm_sys_mremap(at, old_bytes, new_bytes, flags, to);
	got = tm_mem_release_ops.mremap(at, old_bytes, new_bytes, flags, to);
	rc = got == MAP_FAILED ? -errno : (long)got;
	errno = saved;
	return rc;
}

void *tm_mem_remap(void *at, size_t old_bytes, size_t new_bytes, void *to)
{
	long got = leave(at, old_bytes, new_bytes, MREMAP_MAYMOVE | (to ? MREMAP_FIXED : 0), to);

	return tm_sys_is_error(got) ? NULL : (void *)got;
}

int tm_mem_move(void *at, size_t bytes, void *to)
{
	long got = leave(at, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to);

	return tm_sys_is_error(got) ? (int)got : 0;
}

int tm_mem_extend(void *at, size_t old_bytes, size_t new_bytes)
{
	long got = tm_sys_mremap(at, old_bytes, new_bytes, 0, NULL);

	return tm_sys_is_error(got) ? (int)got : 0;
}
