/* SPDX-License-Identifier: MIT */
/* env: TIERMALLOC_RULES="symbol=weights -> tier=persistent; symbol=scratch -> tier=temporary; size=5000 phase=load -> tier=persistent; size=5000 phase=serve -> tier=session; symbol=ranged size=20K..30K -> tier=persistent" */
/* build: -rdynamic */
/*
 * A rule puts blocks of 1 to 64 KiB into its tier, from the first request of a site on: also where the
 * thread has free slots of that class, where the site was known by small requests, for the largest class,
 * for aligned and zeroed ones, other threads, forks. Other sites and sizes stay where they were.
 * Content is kept beside frees by other threads, and what was freed serves again.
 */
#include "claim.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/tiermalloc.h"

#define MANY 2000
#define KEEP(p) __asm__ volatile("" : "+r"(p)::"memory")

void *weights(size_t size);
void *scratch(size_t size);
void *ranged(size_t size);

__attribute__((noinline)) void *weights(size_t size)
{
	void *p = malloc(size);

	KEEP(p);
	return p;
}

__attribute__((noinline)) void *scratch(size_t size)
{
	void *p = malloc(size);

	KEEP(p);
	return p;
}

__attribute__((noinline)) void *ranged(size_t size)
{
	void *p = calloc(1, size);

	KEEP(p);
	return p;
}

static __attribute__((noinline)) void *other(size_t size)
{
	void *p = malloc(size);

	KEEP(p);
	return p;
}

static uint64_t live(enum tiermalloc_tier tier)
{
	struct tiermalloc_stats stats = {.struct_bytes = sizeof(stats)};

	claim(tiermalloc_stats(&stats) == 0, "no figures");
	return stats.live_bytes[tier];
}

static char *block[MANY];
static size_t size[MANY];

static size_t any_size(int i)
{
	return 1025 + (size_t)(i * 7919) % 64511;
}

static void take(void *(*from)(size_t))
{
	for (int i = 0; i < MANY; i++) {
		size[i] = any_size(i);
		block[i] = from(size[i]);
		claim(malloc_usable_size(block[i]) >= size[i], "too small");
		memset(block[i], i, size[i]);
	}
}

static void *give(void *unused)
{
	for (int i = 0; i < MANY; i++) {
		claim(block[i][0] == (char)i && block[i][size[i] - 1] == (char)i, "block %d", i);
		free(block[i]);
	}
	return unused;
}

static uint64_t bytes_of_many(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < MANY; i++)
		sum += any_size(i);
	return sum;
}

/* What `from` is given is of that tier, and of no other. */
static void all_go_to(enum tiermalloc_tier tier, void *(*from)(size_t))
{
	uint64_t before[4], sum = bytes_of_many();
	pthread_t thread;

	for (int t = 1; t < 4; t++)
		before[t] = live((enum tiermalloc_tier)t);
	take(from);
	for (int t = 1; t < 4; t++) {
		uint64_t more = live((enum tiermalloc_tier)t) - before[t];

		claim(t == (int)tier ? more >= sum : (int64_t)more < 64 << 10,
		      "%llu of %llu bytes in tier %d, not all in %d", (unsigned long long)more,
		      (unsigned long long)sum, t, tier);
	}
	pthread_create(&thread, NULL, give, NULL);
	pthread_join(thread, NULL);
	claim(live(tier) < before[tier] + (64 << 10), "%llu bytes stayed in tier %d",
	      (unsigned long long)(live(tier) - before[tier]), tier);
}

static void one_goes_to(enum tiermalloc_tier tier, void *(*from)(size_t), size_t bytes)
{
	uint64_t before = live(tier);
	char *p = from(bytes);

	claim(live(tier) >= before + bytes, "%zu bytes are not of tier %d", bytes, tier);
	memset(p, 1, bytes);
	free(p);
}

static void *in_thread(void *unused)
{
	for (int i = 0; i < 50; i++) {
		one_goes_to(TIERMALLOC_PERSISTENT, weights, 3000);
		one_goes_to(TIERMALLOC_TEMPORARY, scratch, 40000);
	}
	return unused;
}

static void in_child(void)
{
	int status = -1;
	pid_t pid;

	take(weights);
	pid = fork();
	if (pid == 0) {
		give(NULL);
		all_go_to(TIERMALLOC_PERSISTENT, weights);
		_exit(claim_end());
	}
	waitpid(pid, &status, 0);
	claim(status == 0, "the child ended with %d", status);
	give(NULL);
}

int main(void)
{
	static void *free_slots[300];
	pthread_t thread;
	long rss = 0;

	/* free slots of the thread's own, of every class */
	for (int i = 0; i < 300; i++)
		free_slots[i] = other(1025 + (size_t)i * 215);
	for (int i = 0; i < 300; i++)
		free(free_slots[i]);
	free(weights(100));
	free(scratch(1000));
	one_goes_to(TIERMALLOC_PERSISTENT, other, 5000);
	tiermalloc_step(); /* it serves */
	one_goes_to(TIERMALLOC_SESSION, other, 5000);
	one_goes_to(TIERMALLOC_PERSISTENT, weights, 1025);
	one_goes_to(TIERMALLOC_PERSISTENT, weights, 64 << 10);
	one_goes_to(TIERMALLOC_TEMPORARY, scratch, 64 << 10);
	one_goes_to(TIERMALLOC_PERSISTENT, ranged, 20480);
	/* sizes that no rule is about, once what loading has left is given back */
	malloc_trim(0);
	one_goes_to(TIERMALLOC_SESSION, other, 4999);
	one_goes_to(TIERMALLOC_SESSION, other, 64 << 10);
	one_goes_to(TIERMALLOC_SESSION, ranged, 5001);
	one_goes_to(TIERMALLOC_SESSION, ranged, 20000);
	one_goes_to(TIERMALLOC_SESSION, ranged, 31000);
	all_go_to(TIERMALLOC_PERSISTENT, weights);
	all_go_to(TIERMALLOC_TEMPORARY, scratch);
	all_go_to(TIERMALLOC_SESSION, other);
	for (int i = 0; i < 10; i++) {
		if (i == 5)
			rss = claim_status_kib("VmRSS:");
		all_go_to(TIERMALLOC_PERSISTENT, weights);
		all_go_to(TIERMALLOC_TEMPORARY, scratch);
	}
	rss = claim_status_kib("VmRSS:") - rss;
	claim(rss < 32 << 10, "%ld KiB more after five turns more", rss);
	pthread_create(&thread, NULL, in_thread, NULL);
	pthread_join(thread, NULL);
	in_child();

	/* a rule that comes now holds from now on, for a site that is at work */
	claim(tiermalloc_set_tier("size=7000 -> tier=temporary") == 0, "refused");
	one_goes_to(TIERMALLOC_TEMPORARY, other, 7000);
	/* and so does the caller's own word */
	uint64_t before = live(TIERMALLOC_PERSISTENT);
	void *p = tiermalloc_alloc(2000, 16, TIERMALLOC_PERSISTENT);
	claim(live(TIERMALLOC_PERSISTENT) >= before + 2000, "not where the caller wants it");
	free(p);
	return claim_end();
}
