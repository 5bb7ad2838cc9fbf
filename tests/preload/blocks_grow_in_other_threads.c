/* SPDX-License-Identifier: MIT */
/*
 * H17 H40: blocks go round in a ring of threads, each of which checks, grows, shrinks or replaces
 * them and hands them on; threads end and new ones take over their place, so that owners are gone
 * while their blocks are resized. Failure: a lost or foreign byte, or two threads with one block.
 */
#include "claim.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>

enum { SLOTS = 4096, THREADS = 4, ROUNDS = 10, STEPS = 5000 };

struct block {
	uint32_t size;
	uint32_t salt;
	unsigned char body[];
};

static _Atomic(struct block *) slot[SLOTS];

static unsigned char byte_of(uint32_t salt, size_t i)
{
	return (unsigned char)(salt + i * 131 + (i >> 8));
}

static void fill(struct block *b, size_t from)
{
	for (size_t i = from; i < b->size; i++)
		b->body[i] = byte_of(b->salt, i);
}

static void check(const struct block *b, size_t upto)
{
	for (size_t i = 0; i < upto; i += i + 64 < upto && i > 64 ? 37 : 1)
		if (b->body[i] != byte_of(b->salt, i)) {
			claim(false, "byte %zu of %u is %d", i, b->size, b->body[i]);
			return;
		}
}

static void *work(void *which)
{
	unsigned seed = (unsigned)(uintptr_t)which;

	for (int step = 0; step < STEPS; step++) {
		seed = seed * 1103515245 + 12345;
		uint32_t size = (seed >> 16) % 40 == 0 ? (seed >> 3) % 300000 : (seed >> 3) % 2500;
		struct block *b = atomic_exchange(&slot[(seed >> 10) % SLOTS], NULL);
		if (!b) {
			b = step % 3 ? malloc(sizeof(*b) + size) : memalign(64, sizeof(*b) + size);
			*b = (struct block){size, seed};
			fill(b, 0);
		} else {
			uint32_t old = b->size;
			check(b, old);
			if (step % 2) {
				b = realloc(b, sizeof(*b) + size);
				b->size = size;
				check(b, old < size ? old : size);
				fill(b, old < size ? old : size);
			}
		}
		free(atomic_exchange(&slot[(seed >> 5) % SLOTS], b));
	}
	return NULL;
}

int main(void)
{
	pthread_t thread[THREADS];

	for (uintptr_t round = 0; round < ROUNDS; round++) {
		for (uintptr_t i = 0; i < THREADS; i++)
			pthread_create(&thread[i], NULL, work,
				       (void *)(round * 7919 + i * 104729 + 1));
		for (int i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
	}
	size_t alive = 0;
	for (size_t i = 0; i < SLOTS; i++) {
		struct block *b = atomic_load(&slot[i]);
		if (b) {
			check(b, b->size);
			alive += b->size;
		}
		free(b);
	}
	claim(alive > 0, "nothing was left");
	return claim_end();
}
