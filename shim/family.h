/* SPDX-License-Identifier: MIT */
/*
 * family: the members of the malloc family that need more than a tail jump: alignment checks,
 * statistics, mallopt. Semantics are glibc's (H33, H34, H35, H42, H43, H44). Any thread.
 */
#ifndef TM_FAMILY_H
#define TM_FAMILY_H

#include <malloc.h>
#include <stdio.h>

#include "shim/base/attrs.h"
#include "shim/dl.h"

/* glibc's struct mallinfo2, redeclared because older headers lack it. */
struct tm_family_info {
	size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks,
		keepcost;
};

void *tm_family_memalign(size_t align, size_t size);
void *tm_family_aligned_alloc(size_t align, size_t size);
void *tm_family_valloc(size_t size);
/* entry: the memalign or realloc to call, as exported: a tool may have replaced it. */
void *tm_family_pvalloc(size_t size, void *(*entry)(size_t, size_t));
void *tm_family_reallocarray(void *p, size_t n, size_t size, void *(*entry)(void *, size_t));
/* Checks an alignment as posix_memalign does: 0 or EINVAL. */
int tm_family_check_posix_align(size_t align);

struct tm_family_info tm_family_mallinfo2(void);
struct mallinfo tm_family_mallinfo(void);
int tm_family_malloc_info(int options, FILE *stream);
void tm_family_malloc_stats(void);
int tm_family_mallopt(int parameter, int value);
int tm_family_malloc_trim(size_t pad);

/*
 * The dlsym handler that answers a name of the family, looked up on libc's handle, with our
 * function (H92). NULL: not a name of the family.
 */
tm_dl_handler tm_family_dl(const char *name);

#endif
