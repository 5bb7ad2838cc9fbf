/* SPDX-License-Identifier: MIT */
/* A registration cache's view: every range that somebody releases through the libc symbols. */
#include "probe.h"
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { RANGES = 1 << 16 };
static struct range {
	uintptr_t start, end;
} seen[RANGES];
static _Atomic size_t count, moves;
int watch_covers(const void *page);
size_t watch_count(void);
size_t watch_moves(void);

static void note(const void *start, size_t bytes)
{
	size_t i = atomic_fetch_add(&count, 1);

	if (i < RANGES)
		seen[i] = (struct range){(uintptr_t)start, (uintptr_t)start + bytes};
}

int watch_covers(const void *page)
{
	uintptr_t p = (uintptr_t)page;

	for (size_t i = 0; i < count && i < RANGES; i++)
		if (seen[i].start <= p && p < seen[i].end)
			return 1;
	return 0;
}

size_t watch_count(void)
{
	return count;
}

size_t watch_moves(void)
{
	return moves;
}

__attribute__((visibility("default"))) int munmap(void *start, size_t bytes)
{
	note(start, bytes);
	return (int)syscall(SYS_munmap, start, bytes);
}

__attribute__((visibility("default"))) int madvise(void *start, size_t bytes, int advice)
{
	if (advice == MADV_DONTNEED || advice == MADV_FREE)
		note(start, bytes);
	return (int)syscall(SYS_madvise, start, bytes, advice);
}

__attribute__((visibility("default"))) void *mremap(void *start, size_t bytes, size_t fresh,
						    int flags, ...)
{
	va_list list;

	va_start(list, flags);
	void *to = flags & MREMAP_FIXED ? va_arg(list, void *) : NULL;
	va_end(list);
	if ((flags & MREMAP_MAYMOVE) != 0) {
		note(start, bytes);
		moves++;
	}
	return (void *)syscall(SYS_mremap, start, bytes, fresh, flags, to);
}
