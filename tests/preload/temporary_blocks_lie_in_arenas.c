/* SPDX-License-Identifier: MIT */
/*
 * Temporary blocks between 1 and 30 KiB of a program that serves lie apart from what stays, in blocks that
 * are reused whole: they are counted with their tier, keep their content beside frees by another
 * thread, realloc, aligned requests and forks, a wrong free of one is told, and what the blocks hold
 * beyond what lives stays within 2 MiB.
 * Failure: they are the session tier's, lost content, bytes that stay.
 */
#include "claim.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/tiermalloc.h"

#define STEPS 400
#define BATCH 200

static unsigned seed = 1;

static size_t any_size(void)
{
	seed = seed * 1664525u + 1013904223u;
	return 1100 + (seed >> 8) % 29000;
}

static void __attribute__((noinline)) * temporary(size_t bytes)
{
	void *volatile p = malloc(bytes);

	return p;
}

static void __attribute__((noinline)) * aligned(size_t align, size_t bytes)
{
	void *p = NULL;

	claim(posix_memalign(&p, align, bytes) == 0, "no memory");
	claim((uintptr_t)p % align == 0, "%p is not aligned to %zu", p, align);
	return p;
}

static void __attribute__((noinline)) * lasting(size_t bytes)
{
	void *volatile p = malloc(bytes);

	return p;
}

static void fill(unsigned char *p, size_t bytes)
{
	memset(p, (int)((uintptr_t)p >> 8), bytes);
}

static void check(const unsigned char *p, size_t bytes)
{
	unsigned char want = (unsigned char)((uintptr_t)p >> 8);

	for (size_t i = 0; i < bytes; i += i + 97 < bytes ? 97 : 1)
		claim(p[i] == want, "byte %zu of %p is %d", i, (const void *)p, p[i]);
}

static unsigned char *block[BATCH];
static size_t size[BATCH];

static void take_batch(void)
{
	for (int i = 0; i < BATCH; i++) {
		size[i] = any_size();
		if (i % 8 == 0)
			block[i] = aligned(i % 16 == 0 ? 256 : 4096, size[i]);
		else
			block[i] = temporary(size[i]);
		claim(malloc_usable_size(block[i]) >= size[i], "too little is usable");
		fill(block[i], size[i]);
	}
}

static void *give_batch(void *unused)
{
	for (int i = 0; i < BATCH; i++) {
		int at = (i * 37) % BATCH;

		check(block[at], size[at]);
		if (i % 5 == 0) {
			unsigned char *p = realloc(block[at], size[at] / 2 + 600);

			for (size_t k = 0; k < size[at] / 2; k += 97)
				claim(p[k] == (unsigned char)((uintptr_t)block[at] >> 8),
				      "realloc lost byte %zu", k);
			block[at] = p;
		}
		free(block[at]);
	}
	return unused;
}

static void in_a_child(void)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		give_batch(NULL);
		for (int i = 0; i < 3; i++) {
			take_batch();
			give_batch(NULL);
		}
		_exit(0);
	}
	waitpid(pid, &status, 0);
	claim(status == 0, "the child ended with %#x", (unsigned)status);
}

static uint64_t in_tier(int tier)
{
	struct tiermalloc_stats stats = {.struct_bytes = sizeof(stats)};

	claim(tiermalloc_stats(&stats) == 0, "no stats");
	return stats.live_bytes[tier];
}

int main(void)
{
	static unsigned char *kept[STEPS];
	uint64_t most = 0;
	pthread_t thread;
	long rss = 0;

	for (int i = 0; i < 16; i++)
		memset(lasting(1 << 20), 1, 1 << 20);
	for (int step = 0; step < STEPS; step++) {
		tiermalloc_step();
		take_batch();
		kept[step] = lasting(3000);
		fill(kept[step], 3000);
		if (step >= STEPS / 2 && in_tier(TIERMALLOC_TEMPORARY) > most)
			most = in_tier(TIERMALLOC_TEMPORARY);
		if (step % 50 == 49)
			in_a_child();
		if (step % 4 == 1) {
			pthread_create(&thread, NULL, give_batch, NULL);
			pthread_join(thread, NULL);
		} else {
			give_batch(NULL);
		}
		if (step == STEPS / 2)
			rss = claim_status_kib("VmRSS:");
	}
	claim(most > BATCH * 15000 / 2, "%llu bytes of the temporary tier",
	      (unsigned long long)most);
	claim(in_tier(TIERMALLOC_TEMPORARY) < 64 << 10, "%llu bytes of it are left",
	      (unsigned long long)in_tier(TIERMALLOC_TEMPORARY));
	rss = claim_status_kib("VmRSS:") - rss;
	claim(rss < 2048 + STEPS * 3, "%ld KiB more after %d steps", rss, STEPS / 2);
	for (int i = 0; i < STEPS; i++)
		check(kept[i], 3000);
	return claim_end();
}
