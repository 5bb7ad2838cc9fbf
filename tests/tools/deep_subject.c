/* SPDX-License-Identifier: MIT */
/*
 * The program of lives_are_exact.py: deep_subject kill|exit. Prints "NAME ADDRESS BEFORE AFTER" (clock in ns)
 * of objects that stay, and "lives NAME COUNT LEAST MOST" bounds of those that died, as it measures both.
 */
/* run: none */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void *volatile sink;
static char out[1 << 16];
static size_t used;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void say(const char *name, const void *p, uint64_t before, uint64_t after)
{
	used += (size_t)snprintf(out + used, sizeof(out) - used, "%s %lx %lu %lu\n", name,
				 (unsigned long)p, before, after);
}

#define STAYS(name, call)                                                                          \
	__attribute__((noinline)) static void name(void)                                           \
	{                                                                                          \
		uint64_t before = now();                                                           \
		void *p = (call);                                                                  \
		uint64_t after = now();                                                            \
		memset(p, 1, 16);                                                                  \
		say(#name, p, before, after);                                                      \
	}
STAYS(small, malloc(72))
STAYS(zeroed, calloc(9, 11))
STAYS(medium, malloc(6000))
STAYS(solo, malloc(50000))
STAYS(block, malloc(300000))
STAYS(aligned, aligned_alloc(256, 512))
STAYS(grown, realloc(malloc(100), 20000))

__attribute__((noinline)) static void *brief(void)
{
	return sink = malloc(40);
}

__attribute__((noinline)) static void *longer(void)
{
	return sink = malloc(5000);
}

static void live_and_die(const char *name, void *(*make)(void), unsigned n, useconds_t pause)
{
	uint64_t least = UINT64_MAX, most = 0;

	for (unsigned i = 0; i < n; i++) {
		uint64_t a = now();
		void *p = make();
		uint64_t b = now();
		usleep(pause);
		uint64_t c = now();
		free(p);
		uint64_t d = now();

		least = c - b < least ? c - b : least;
		most = d - a > most ? d - a : most;
	}
	used += (size_t)snprintf(out + used, sizeof(out) - used, "lives %s %u %lu %lu\n", name, n,
				 least, most);
}

/* Each of 33 lives ends in the realloc that moves it, and one in free. */
__attribute__((noinline)) static void *first(void)
{
	return sink = malloc(90);
}

static void move_on(void)
{
	for (int i = 0; i < 33; i++)
		free(realloc(first(), 3000));
}

__attribute__((noinline)) static void *sized(void)
{
	return sink = malloc(7000);
}

/* 40 at once, 4,000 in all, freed by another thread; 10 stay. */
static void *free_all(void *arg)
{
	void **p = arg;

	for (int i = 0; i < 40; i++)
		free(p[i]);
	return NULL;
}

static void sizes(void)
{
	void *p[40];
	pthread_t thread;

	for (int round = 0; round < 100; round++) {
		for (int i = 0; i < 40; i++)
			p[i] = sized();
		pthread_create(&thread, NULL, free_all, p);
		pthread_join(thread, NULL);
	}
	for (int i = 0; i < 10; i++)
		memset(sized(), 1, 7000);
}

int main(int argc, char **argv)
{
	for (int i = 0; i < 20; i++) {
		small();
		zeroed();
		medium();
		solo();
		block();
		aligned();
		grown();
		usleep(1000);
	}
	live_and_die("brief", brief, 60, 3000);
	live_and_die("longer", longer, 2, 1300000);
	move_on();
	sizes();
	if (write(1, out, used) != (ssize_t)used)
		return 1;
	if (argc > 1 && strcmp(argv[1], "kill") == 0)
		kill(getpid(), SIGKILL);
}
