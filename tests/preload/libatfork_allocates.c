/* SPDX-License-Identifier: MIT */
/* Registers fork handlers that allocate and free in all three phases, as LTTng and others do. */
#include "probe.h"
#include <pthread.h>

static void *kept[64];

static void churn(uint64_t seed)
{
	for (int i = 0; i < 64; i++) {
		free(kept[i]);
		kept[i] = malloc(1 + probe_random(&seed) % (i == 0 ? 3000000 : 8000));
		probe_require(kept[i] != NULL, "malloc in a fork handler is NULL");
	}
	probe_visit_allocator(seed);
}

static void prepare(void)
{
	churn(1);
}

static void parent(void)
{
	churn(2);
}

static void child(void)
{
	churn(3);
}

__attribute__((constructor)) static void register_handlers(void)
{
	pthread_atfork(prepare, parent, child);
}
