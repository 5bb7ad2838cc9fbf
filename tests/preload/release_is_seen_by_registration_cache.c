/* SPDX-License-Identifier: MIT */
/*
 * H52: RDMA and CUDA registration caches interpose munmap, madvise and mremap. Every page that leaves
 * its address, by free, by idle time, by malloc_trim or by a realloc that moves it, was released through these symbols, and
 * from the caller's own thread context as they expect.
 * Failure: a page went away by a raw system call: the cache keeps a stale registration (glibc
 * itself fails here: its munmap is internal).
 */
/* preload: libwatch_release.so @ */
#include "probe.h"
#include <dlfcn.h>
#include <malloc.h>

enum { BLOCKS = 600 };

static bool is_resident(int pagemap, const void *page)
{
	uint64_t entry = 0;

	if (pread(pagemap, &entry, 8, (off_t)((uintptr_t)page / 4096 * 8)) != 8)
		return false;
	return entry >> 62 != 0; /* present or swapped */
}

/* Blocks that hinder each other grow until one has moved as a whole. */
static void move_pages(int pagemap, int (*covers)(const void *))
{
	char *block[8];
	size_t bytes = 2 * MIB;
	int moved = 0;

	for (int i = 0; i < 8; i++) {
		block[i] = malloc(bytes);
		memset(block[i], 1, bytes);
	}
	for (; bytes < 64 * MIB; bytes *= 2)
		for (int i = 0; i < 8; i++) {
			uintptr_t old = (uintptr_t)block[i];

			block[i] = realloc(block[i], 2 * bytes);
			if ((uintptr_t)block[i] == old || is_resident(pagemap, (void *)(old + MIB)))
				continue; /* not moved, or copied and kept for others */
			moved++;
			probe_require(covers((void *)(old + MIB)), "%zu bytes moved unseen", bytes);
		}
	for (int i = 0; i < 8; i++)
		free(block[i]);
	void *symbol = dlsym(RTLD_DEFAULT, "watch_moves");
	size_t (*seen)(void);

	probe_require(symbol != NULL, "libwatch_release.so is an old one");
	memcpy(&seen, &symbol, sizeof(seen));
	/* not only the release of the old place, which comes after the pages have left it */
	probe_require(seen() >= (size_t)moved, "%d blocks moved, %zu moves were seen", moved,
		      seen());
}

int main(void)
{
	static unsigned char *block[BLOCKS];
	static size_t bytes[BLOCKS];
	int (*covers)(const void *);
	void *symbol = dlsym(RTLD_DEFAULT, "watch_covers");
	int pagemap = open("/proc/self/pagemap", O_RDONLY);
	size_t gone = 0, unseen = 0;

	probe_limit();
	probe_require(symbol != NULL, "libwatch_release.so is not loaded");
	memcpy(&covers, &symbol, sizeof(covers));
	if (pagemap < 0)
		probe_skip("no /proc/self/pagemap");
	move_pages(pagemap, covers); /* first: what was seen stays seen */
	for (size_t i = 0; i < BLOCKS; i++) {
		bytes[i] = i % 3 == 0 ? 2 * MIB + i * 4096 : i % 3 == 1 ? 100000 + i : 6000;
		block[i] = malloc(bytes[i]);
		memset(block[i], 1, bytes[i]);
	}
	for (size_t i = 0; i < BLOCKS; i++)
		free(block[i]);
	for (int i = 0; i < 30; i++) { /* the next caller purges where madvise is interposed */
		probe_sleep_ms(100);
		free(malloc(100));
		free(malloc(100000));
	}
	malloc_trim(0);
	for (size_t i = 0; i < BLOCKS; i++)
		for (size_t at = 4095; at + 4096 < bytes[i]; at += 4096) {
			if (is_resident(pagemap, block[i] + at))
				continue;
			gone++;
			unseen += covers(block[i] + at) == 0;
		}
	probe_require(gone > 50000, "only %zu pages were given back", gone);
	probe_require(unseen == 0, "%zu of %zu pages went away unseen", unseen, gone);
	return 0;
}
