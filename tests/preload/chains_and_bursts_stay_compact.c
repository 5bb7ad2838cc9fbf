/* SPDX-License-Identifier: MIT */
/*
 * H42, log 61 63 65 66 67 68 69: patterns that left other allocators with many times the live
 * memory. Each runs in a child; at its end, after a trim, resident memory is near what is alive.
 *   chain    realloc from 1 MB by 1 % steps with 4 KB pins in between (200 % with jemalloc)
 *   aligned  posix_memalign(64, n) of growing n with small pins (brk grew and grew)
 *   bursts   8 threads, 30 rounds of 300 blocks of 10 to 500 KB (+50-100 MB per call)
 *   switch   two sets of 150 MB in 3000 blocks of different sizes, by turns
 *   killed   blocks of threads that stop in the middle are freed by others
 */
#include "claim.h"

#include <malloc.h>
#include <pthread.h>

static void *filled(size_t size)
{
	return memset(malloc(size), 1, size);
}

static size_t draw(unsigned *seed, size_t below)
{
	*seed = *seed * 1103515245 + 12345;
	return (*seed >> 8) % below;
}

static size_t chain(void)
{
	enum { STEPS = 400 };
	static void *pins[STEPS];
	size_t size = 1 << 20;
	char *p = filled(size);

	for (int i = 0; i < STEPS; i++) {
		size += size / 100;
		p = realloc(p, size);
		memset(p + size - size / 100, 1, size / 100);
		pins[i] = filled(4096);
	}
	claim(pins[STEPS - 1], "pins");
	return size + STEPS * 4096;
}

static size_t aligned(void)
{
	size_t alive = 0;
	void *p = NULL;

	for (size_t n = 1000; n < 2000000; n += n / 50) {
		for (int k = 0; k < 20; k++) {
			free(p);
			if (posix_memalign(&p, 64, n + (size_t)k * 64))
				abort();
			memset(p, 1, n);
		}
		claim(filled(200), "pin");
		alive += 200;
	}
	return alive + 2000000;
}

static void *burst(void *which)
{
	unsigned seed = (unsigned)(uintptr_t)which;
	static __thread void *block[300];

	for (int round = 0; round < 8; round++) {
		for (int i = 0; i < 300; i++) {
			size_t size = draw(&seed, 490000) + 10000;
			block[i] = malloc(size);
			memset(block[i], 1, size / 4);
			if (i >= 40)
				free(block[i - 40]);
		}
		for (int i = 260; i < 300; i++)
			free(block[i]);
	}
	return NULL;
}

static size_t bursts(void)
{
	pthread_t thread[8];

	for (int round = 0; round < 4; round++) {
		for (uintptr_t i = 0; i < 8; i++)
			pthread_create(&thread[i], NULL, burst, (void *)(i + 1));
		for (int i = 0; i < 8; i++)
			pthread_join(thread[i], NULL);
	}
	return 0;
}

static size_t switched(void)
{
	enum { BLOCKS = 3000 };
	static void *block[BLOCKS];
	size_t alive = 0;

	for (int round = 0; round < 6; round++) {
		unsigned seed = (unsigned)round % 2 + 1;
		alive = 0;
		for (int i = 0; i < BLOCKS; i++) {
			size_t size =
				round % 2 ? draw(&seed, 100000) + 1 : draw(&seed, 20) * 5000 + 100;
			block[i] = filled(size);
			alive += size;
		}
		if (round < 5)
			for (int i = 0; i < BLOCKS; i++)
				free(block[i]);
	}
	return alive;
}

static void *slots[16][400];

static void *request(void *which)
{
	uintptr_t me = (uintptr_t)which;
	unsigned seed = (unsigned)me + 3;

	for (int i = 0; i < 400; i++)
		slots[me][i] = filled(draw(&seed, 30000) + 20);
	return NULL; /* and leaves everything behind */
}

static size_t killed(void)
{
	pthread_t thread[16];

	for (int round = 0; round < 10; round++) {
		for (uintptr_t i = 0; i < 16; i++)
			pthread_create(&thread[i], NULL, request, (void *)i);
		for (int i = 0; i < 16; i++)
			pthread_join(thread[i], NULL);
		for (int i = 0; i < 16; i++)
			for (int j = 0; j < 400; j++)
				free(slots[i][j]);
	}
	return 0;
}

static const struct {
	const char *name;
	size_t (*run)(void);
} patterns[] = {{"chain", chain},
		{"aligned", aligned},
		{"bursts", bursts},
		{"switch", switched},
		{"killed", killed}};

int main(int argc, char **argv)
{
	static struct claim_output out;

	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
		if (argc == 1) {
			int status = claim_again(claim_preload(), patterns[i].name, &out);
			claim(status == 0, "%s: status %d, %.300s", patterns[i].name, status,
			      out.text);
		} else if (strcmp(argv[1], patterns[i].name) == 0) {
			long base = claim_status_kib("VmRSS:");
			size_t alive = patterns[i].run();
			malloc_trim(0);
			long held = claim_status_kib("VmRSS:") - base;
			claim(held < (long)(alive / 1024) * 5 / 4 + 8192,
			      "%s: %ld KiB held for %zu alive", patterns[i].name, held,
			      alive / 1024);
		}
	}
	return claim_end();
}
