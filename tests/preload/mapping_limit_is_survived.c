/* SPDX-License-Identifier: MIT */
/*
 * H56: the program has used up vm.max_map_count. Freed memory is reused and can still go back
 * (MADV_DONTNEED works where munmap fails with ENOMEM); what needs a new mapping is NULL with
 * ENOMEM; when mappings are free again, everything is served.
 * Failure: abort, a crash on free, or a block that is not writable.
 */
#include "probe.h"
#include <malloc.h>
#include <sys/mman.h>

enum { BLOCKS = 60 };

/* Cuts one mapping in pieces until the kernel refuses. */
static char *use_up(size_t *ret_bytes)
{
	long max = 65530;
	char buf[64];

	if (probe_read("/proc/sys/vm/max_map_count", buf, sizeof(buf)) > 0)
		max = strtol(buf, NULL, 10);
	if (max > 300000)
		probe_skip("max_map_count is %ld", max);
	*ret_bytes = (size_t)max * 4096;
	char *p = mmap(NULL, *ret_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		       0);
	probe_require(p != MAP_FAILED, "no mapping");
	for (size_t at = 0; at < *ret_bytes; at += 8192)
		if (mprotect(p + at, 4096, PROT_NONE) != 0)
			return p;
	probe_skip("the limit was never met");
}

static size_t allocate(unsigned char **block, size_t bytes)
{
	size_t got = 0;

	for (size_t i = 0; i < BLOCKS; i++) {
		errno = 0;
		block[i] = malloc(bytes + i * 4096);
		if (block[i] == NULL)
			probe_require(errno == ENOMEM, "errno is %d", errno);
		else
			memset(block[i], 1, bytes + i * 4096);
		got += block[i] != NULL;
	}
	return got;
}

int main(void)
{
	static unsigned char *block[BLOCKS], *more[BLOCKS], *small[10000];
	size_t bytes;

	probe_limit();
	for (size_t i = 0; i < 10000; i++)
		small[i] = calloc(1, i % 3000 + 1);
	allocate(block, 3 * MIB);
	char *wall = use_up(&bytes);
	for (size_t i = 0; i < BLOCKS; i += 2) {
		free(block[i]);
		block[i] = NULL;
	}
	size_t reused = allocate(more, MIB);
	for (size_t i = 0; i < BLOCKS; i++)
		free(more[i]);
	for (size_t i = 0; i < 10000; i++) {
		void *p = realloc(small[i], i % 4000 + 1);
		small[i] = p != NULL ? p : small[i];
	}
	for (size_t i = 0; i < BLOCKS; i++)
		free(block[i]);
	for (size_t i = 0; i < 10000; i++)
		free(small[i]);
	malloc_trim(0);
	size_t rss = probe_rss_anon(0);
	munmap(wall, bytes);
	probe_require(rss < 60 * MIB, "%zu MiB could not be given back", rss / MIB);
	probe_require(reused > BLOCKS / 3, "only %zu blocks came from freed memory", reused);
	probe_require(allocate(block, 4 * MIB) == BLOCKS, "NULL after the limit was lifted");
	probe_visit_allocator(1);
	return 0;
}
