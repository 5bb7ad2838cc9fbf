/* SPDX-License-Identifier: MIT */
/*
 * mem: pages. Every mapping the library makes or gives back goes through here.
 *
 * Addresses and lengths are multiples of the kernel's page. All functions return 0 or -errno (or a
 * pointer, NULL on failure), leave errno alone, take no lock and may be called from any thread and
 * any signal handler.
 *
 * Giving user memory back (tm_mem_unmap, tm_mem_dontneed, tm_mem_remap, tm_mem_move) goes through libc's own symbols once
 * tm_mem_use_libc was called, because registration caches of RDMA and CUDA stacks interpose them
 * (H52); a thread without libc state must take the _raw forms.
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

/* [const after boot] NULL members: the kernel is called directly. */
extern TM_HIDDEN struct tm_mem_release_ops tm_mem_release_ops;

/* libc's, as dlsym or the link gave them; called once, at boot. */
void tm_mem_use_libc(struct tm_mem_release_ops ops);

/*
 * Maps private zero pages exactly at "at", without reserving swap. -EEXIST when something is mapped
 * there already, also on kernels before 4.17, which do not know MAP_FIXED_NOREPLACE.
 */
int tm_mem_map_at(void *at, size_t bytes, int prot);

/* The same from the pool of huge pages of 1 << page_shift bytes. -ENOMEM where too few are there. */
int tm_mem_map_hugetlb(void *at, size_t bytes, unsigned page_shift);

/* The same over pages we own: replaces what is there, which is a way of giving it back. */
int tm_mem_map_fixed(void *at, size_t bytes, int prot);

/* Readable and writable zero pages anywhere. */
void *tm_mem_map(size_t bytes);

int tm_mem_protect(void *at, size_t bytes, int prot);

int tm_mem_unmap(void *at, size_t bytes);
int tm_mem_unmap_raw(void *at, size_t bytes);

/* After 0 the pages read as zeros. -EINVAL: locked pages, nothing was given back. */
int tm_mem_dontneed(void *at, size_t bytes);
int tm_mem_dontneed_raw(void *at, size_t bytes);

/* Out of memory without losing anything: files' pages to the file, others to swap. Linux 5.4. */
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
 * Moves or resizes pages; content is kept up to the smaller length. "to" is where they shall be,
 * replacing what is mapped there, or NULL: where they are, else anywhere. NULL on failure, nothing
 * has changed then.
 */
void *tm_mem_remap(void *at, size_t old_bytes, size_t new_bytes, void *to);

/*
 * Moves what the pages hold to "to", which is mapped already and replaced; the old pages stay mapped,
 * as zeros (Linux 5.7). 0 or -errno, nothing has moved then.
 */
int tm_mem_move(void *at, size_t bytes, void *to);

/* Grows a mapping where it is. -ENOMEM when something is in the way. */
int tm_mem_extend(void *at, size_t old_bytes, size_t new_bytes);

#endif
