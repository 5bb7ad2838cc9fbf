/* SPDX-License-Identifier: MIT */
/* cross: yes */
/*
 * H17, log 67: one thread allocates, four only free, 3 million blocks of 64 B to 1 MB with at
 * most 4000 alive; then the owner ends first and its blocks are freed by the others. Failure:
 * remote frees that are never taken back, so that memory grows with the number of blocks.
 */
#include "claim.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { CONSUMERS = 4, DEPTH = 1024, BLOCKS = 3000000 };

static struct {
	_Atomic(void *) slot[DEPTH];
} queue[CONSUMERS];
static atomic_bool done;

static void *consume(void *which)
{
	uintptr_t me = (uintptr_t)which;

	for (unsigned at = 0;; at = (at + 1) % DEPTH) {
		void *p;
		for (int spin = 0; !(p = atomic_exchange(&queue[me].slot[at], NULL)); spin++) {
			if (atomic_load(&done))
				return NULL;
			sched_yield();
		}
		claim(*(unsigned char *)p == 0x5a, "a block changed on its way");
		free(p);
	}
}

static size_t size_of(unsigned i)
{
	if (i % 20000 == 0)
		return 1 << 20;
	if (i % 1000 == 0)
		return i / 1000 % 60 * 1024 + 64;
	return i * 2654435761u % 900 + 64;
}

static void *produce(void *unused)
{
	unsigned at[CONSUMERS] = {0};

	for (unsigned i = 0; i < BLOCKS; i++) {
		unsigned to = i % CONSUMERS;
		unsigned char *p = malloc(size_of(i));
		*p = 0x5a;
		void *none = NULL;
		while (!atomic_compare_exchange_weak(&queue[to].slot[at[to]], &none, p)) {
			none = NULL;
			sched_yield();
		}
		at[to] = (at[to] + 1) % DEPTH;
	}
	return unused;
}

int main(void)
{
	pthread_t consumer[CONSUMERS], producer;

	for (uintptr_t i = 0; i < CONSUMERS; i++)
		pthread_create(&consumer[i], NULL, consume, (void *)i);
	pthread_create(&producer, NULL, produce, NULL);
	pthread_join(producer, NULL);
	usleep(10000);
	atomic_store(&done, true);
	for (int i = 0; i < CONSUMERS; i++)
		pthread_join(consumer[i], NULL);
	long peak = claim_status_kib("VmHWM:");
	/* 4096 blocks of at most 964 bytes, 4 of 1 MiB: 8 MiB; the rest is slack and threads */
	claim(peak < 48 << 10, "peak %ld KiB for at most 8 MiB alive", peak);
	return claim_end();
}
