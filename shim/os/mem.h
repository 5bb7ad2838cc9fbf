/* SPDX-License-Identifier: MIT */
/*
 * mem: mmap and relatives. All mappings that the library makes or releases go through this module.
 *
 * Addresses and lengths are multiples of the kernel's page size. All functions return 0 or -errno
 * (or a pointer, NULL on failure), don't change errno, take no lock, and may be called from any
 * thread and any signal handler.
 *
 * Functions that release user memory (tm_mem_unmap, tm_mem_dontneed, tm_mem_remap, tm_mem_move)
 * call libc's symbols once tm_mem_use_libc was called, because the registration caches of RDMA and
 * CUDA stacks interpose those (H52). A thread without libc state must use the _raw forms.
 */
#ifndef TM_OS_MEM_H
#define TM_OS_MEM_H

#include <sys/mman.h>

#include "shim/base/attrs.h"

struct tm_mem_release_ops {
	int (*munmap)(void *, size_t);
	int (*madvise)(void *, size_t, int);
	void *(*mremap)(void *, size_t, size_t, int, ...);
};

/* [const after boot] A NULL member: the system call is made directly. */
extern TM_HIDDEN struct tm_mem_release_ops tm_mem_release_ops;

/* Sets libc's functions for releases; called once, at boot. */
void tm_mem_use_libc(struct tm_mem_release_ops ops);

/*
 * Maps private zero pages exactly at "at", without reserving swap (MAP_NORESERVE). -EEXIST:
 * something is mapped there already; also on kernels before 4.17, which lack MAP_FIXED_NOREPLACE.
 */
int tm_mem_map_at(void *at, size_t bytes, int prot);

/* The same with hugetlb pages of 1 << page_shift bytes. -ENOMEM: the pool has too few. */
int tm_mem_map_hugetlb(void *at, size_t bytes, unsigned page_shift);

/* The same over pages of our own: replaces, and so releases, what is mapped there. */
int tm_mem_map_fixed(void *at, size_t bytes, int prot);

/* Maps readable and writable zero pages at an address of the kernel's choice. */
void *tm_mem_map(size_t bytes);

/*
 * A table that few processes need, in a mapping of its own: bytes that nobody touches count where
 * data is limited (RLIMIT_DATA, RLIMIT_AS, mlockall), too. The first caller maps it, zeroed, and it
 * stays. NULL: no memory; the next call tries again. Any thread, any signal handler.
 */
void *tm_mem_once(void *_Atomic *at, size_t bytes);

int tm_mem_protect(void *at, size_t bytes, int prot);

int tm_mem_unmap(void *at, size_t bytes);
int tm_mem_unmap_raw(void *at, size_t bytes);

/* MADV_DONTNEED. After 0 the pages read as zeros. -EINVAL: locked pages, nothing was released. */
int tm_mem_dontneed(void *at, size_t bytes);
int tm_mem_dontneed_raw(void *at, size_t bytes);

/* MADV_PAGEOUT: reclaims pages without loss, to their file or to swap. Linux 5.4. */
int tm_mem_pageout(void *at, size_t bytes);

int tm_mem_hugepage(void *at, size_t bytes);
int tm_mem_nohugepage(void *at, size_t bytes);
int tm_mem_collapse(void *at, size_t bytes);       /* Linux 6.1 */
int tm_mem_populate_write(void *at, size_t bytes); /* Linux 5.14 */
int tm_mem_populate_read(void *at, size_t bytes);  /* Linux 5.14 */
int tm_mem_wipeonfork(void *at, size_t bytes);     /* Linux 4.14 */
int tm_mem_keeponfork(void *at, size_t bytes);
int tm_mem_dontdump(void *at, size_t bytes);

/*
 * mremap: moves or resizes a mapping; contents are kept up to the smaller length. to: the new
 * address, where it replaces what is mapped; NULL: in place if possible, else anywhere. NULL on
 * failure, with nothing changed.
 */
void *tm_mem_remap(void *at, size_t old_bytes, size_t new_bytes, void *to);

/*
 * Moves the pages' contents to the existing mapping at "to", which is replaced; the old range stays
 * mapped and reads as zeros (MREMAP_DONTUNMAP, Linux 5.7). 0 or -errno, with nothing moved.
 */
int tm_mem_move(void *at, size_t bytes, void *to);

/* Grows a mapping in place. -ENOMEM: another mapping is in the way. */
int tm_mem_extend(void *at, size_t old_bytes, size_t new_bytes);

#endif
