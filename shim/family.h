/* SPDX-License-Identifier: MIT */
/*
 * family: the members of the malloc family that are more than a jump: alignment rules, statistics,
 * tuning. Semantics are glibc's (H33, H34, H35, H42, H43, H44). Any thread.
 */
#ifndef TM_FAMILY_H
#define TM_FAMILY_H

#include <malloc.h>
#include <stdio.h>

#include "shim/base/attrs.h"
#include "shim/dl.h"

/* glibc's mallinfo2, under a name of ours, so that older headers do. */
struct tm_family_info {
	size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks,
		keepcost;
};

void *tm_family_memalign(size_t align, size_t size);
void *tm_family_aligned_alloc(size_t align, size_t size);
void *tm_family_valloc(size_t size);
/* `entry`: the exported memalign or realloc, which a tool may have replaced. */
void *tm_family_pvalloc(size_t size, void *(*entry)(size_t, size_t));
void *tm_family_reallocarray(void *p, size_t n, size_t size, void *(*entry)(void *, size_t));
/* The engine's posix_memalign may use the check: 0 or EINVAL. */
int tm_family_check_posix_align(size_t align);

struct tm_family_info tm_family_mallinfo2(void);
struct mallinfo tm_family_mallinfo(void);
int tm_family_malloc_info(int options, FILE *stream);
void tm_family_malloc_stats(void);
int tm_family_mallopt(int parameter, int value);
int tm_family_malloc_trim(size_t pad);

/* What dlsym answers for a name of ours on libc's handle: our function (H92). NULL: none of ours. */
tm_dl_handler tm_family_dl(const char *name);

#endif
