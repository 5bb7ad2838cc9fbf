/*
 * What the kernel alone asks for the memory of tensor_idle: as many bytes lie in place on 2 MiB pages,
 * are written, and all but a tenth of them are given back while nothing happens.
 * Question: which share of a step's CPU could an allocator save that gives back as much? Metric: CPU
 * per step, to tensor_idle's. usage: idle_floor STEPS IDLE_MS [KEEP_PERCENT]
 */
#include "mb.h"

#define BYTES ((size_t)210 << 20)

int main(int c, char **v)
{
	int steps = c > 1 ? atoi(v[1]) : 6;
	int idle_ms = c > 2 ? atoi(v[2]) : 1500;
	size_t unit = (size_t)2 << 20;
	size_t keep = BYTES * (size_t)(c > 3 ? atoi(v[3]) : 10) / 100 & ~(unit - 1);
	char *at = mmap(0, BYTES + unit, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	double least = 1e9, all = 0;
	long faults = 0;

	if (at == MAP_FAILED)
		return 1;
	at = (char *)(((uintptr_t)at + unit - 1) & ~(unit - 1));
	madvise(at, BYTES, MADV_HUGEPAGE);
	for (int i = 0; i < steps + 2; i++) {
		snap_t a = snap();
		memset(at, i + 1, BYTES);
		madvise(at + keep, BYTES - keep, MADV_DONTNEED);
		snap_t e = snap();
		double ms = ((e.user - a.user) + (e.sys - a.sys)) * 1e3;

		usleep((useconds_t)idle_ms * 1000);
		if (i < 2)
			continue;
		least = ms < least ? ms : least;
		all += ms;
		faults += e.minflt - a.minflt;
	}
	printf("least_cpu_ms=%.3f cpu_ms=%.3f minflt_per_step=%.1f end_rss_mb=%.1f\n", least, all / steps,
	       (double)faults / steps, rss_kb() / 1024.0);
	return 0;
}
