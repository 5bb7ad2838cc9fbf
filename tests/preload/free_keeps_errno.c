/* SPDX-License-Identifier: MIT */
/* cross: yes */
/*
 * H37, log 42: free leaves errno alone, on fast and slow paths, for small, large and remote
 * blocks, even when giving memory back fails (the block is locked, so DONTNEED is refused).
 * Failure: errno != 77 after free.
 */
#include "claim.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

static void *kept[4096];

static void free_and_look(void *p, const char *what)
{
	errno = 77;
	free(p);
	claim(errno == 77, "%s: errno %d", what, errno);
}

static void *elsewhere(void *unused)
{
	for (size_t i = 0; i < 4096; i++)
		free_and_look(kept[i], "block of another thread");
	return unused;
}

int main(void)
{
	pthread_t thread;

	free_and_look(NULL, "NULL");
	for (int i = 0; i < 1000000; i++)
		free_and_look(malloc((size_t)i % 900), "small");
	for (size_t size = 1000; size < (size_t)100 << 20; size += size / 2)
		free_and_look(malloc(size), "large");
	for (size_t size = (size_t)1 << 20; size <= (size_t)64 << 20; size *= 2) {
		char *p = malloc(size);
		memset(p, 1, size);
		if (size <= 4 << 20)
			mlock(p, size);
		free_and_look(p, "locked");
		malloc_trim(0);
	}
	for (size_t i = 0; i < 4096; i++)
		kept[i] = malloc(i % 300 == 0 ? 100000 : i);
	pthread_create(&thread, NULL, elsewhere, NULL);
	pthread_join(thread, NULL);
	return claim_end();
}
