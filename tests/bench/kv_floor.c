/*
 * What the kernel alone asks for the memory of kv_growth: the buffers lie in place from the start, so
 * that nothing is moved, copied or administered, and are written in the same order, 256 KiB at a time.
 * Question: which share of an allocator's CPU could another allocator save? Metric: CPU to kv_growth's
 * under glibc. usage: kv_floor MAXMB huge|plain|populate
 *   huge      2 MiB pages, advised before the first touch
 *   plain     4 KiB pages, a fault each
 *   populate  4 KiB pages, made resident by one call per 256 KiB
 */
#include "mb.h"

#define BUFFERS 48
#define STEP ((size_t)256 << 10)
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

int main(int c, char **v)
{
	size_t max = (size_t)(c > 1 ? atoi(v[1]) : 16) << 20;
	const char *how = c > 2 ? v[2] : "huge";
	size_t unit = (size_t)2 << 20;
	char *at = mmap(0, BUFFERS * max + unit, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			-1, 0);

	if (at == MAP_FAILED)
		return 1;
	at = (char *)(((uintptr_t)at + unit - 1) & ~(unit - 1));
	if (!strcmp(how, "huge"))
		madvise(at, BUFFERS * max, MADV_HUGEPAGE);
	else
		madvise(at, BUFFERS * max, MADV_NOHUGEPAGE);
	snap_t a = snap();
	for (size_t cur = 0; cur < max; cur += STEP)
		for (int i = 0; i < BUFFERS; i++) {
			if (!strcmp(how, "populate"))
				madvise(at + i * max + cur, STEP, MADV_POPULATE_WRITE);
			memset(at + i * max + cur, 2, STEP);
		}
	snap_t e = snap();
	printf("user_s=%.3f sys_s=%.3f minflt=%ld\n", e.user - a.user, e.sys - a.sys, e.minflt - a.minflt);
	return 0;
}
