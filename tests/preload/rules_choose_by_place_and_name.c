/* SPDX-License-Identifier: MIT */
/* env: TIERMALLOC_RULES="symbol=subject_function -> tier=persistent; module=librules_subject.so size>=2M -> tier=temporary" */
/* libs: librules_subject.so */
/* build: -rdynamic */
/*
 * Rules by function and by file reach the calls they name, and no others.
 */
#include <stdio.h>
#include <stdlib.h>

#include "claim.h"
#include "shim/tiermalloc.h"

void *rules_subject(size_t size);
void *subject_function(size_t size);

__attribute__((noinline)) void *subject_function(size_t size)
{
	void *p = malloc(size);

	__asm__ volatile("" ::"r"(p) : "memory");
	return p;
}

static uint64_t live(int tier)
{
	struct tiermalloc_stats stats = {.struct_bytes = sizeof(stats)};

	claim(tiermalloc_stats != NULL && tiermalloc_stats(&stats) == 0, "at line %d", __LINE__);
	return stats.live_bytes[tier];
}

int main(void)
{
	uint64_t persistent, temporary;

	tiermalloc_step(); /* serving: nothing is persistent by itself */
	persistent = live(TIERMALLOC_PERSISTENT);
	temporary = live(TIERMALLOC_TEMPORARY);
	claim(subject_function(1 << 20) != NULL, "at line %d", __LINE__);
	claim(live(TIERMALLOC_PERSISTENT) >= persistent + (1 << 20), "at line %d", __LINE__);
	claim(rules_subject(2 << 20) != NULL, "at line %d", __LINE__);
	claim(live(TIERMALLOC_TEMPORARY) >= temporary + (2 << 20), "at line %d", __LINE__);
	persistent = live(TIERMALLOC_PERSISTENT);
	temporary = live(TIERMALLOC_TEMPORARY);
	claim(malloc(4 << 20) != NULL, "at line %d", __LINE__);
	claim(rules_subject(1 << 20) != NULL, "at line %d", __LINE__);
	claim(live(TIERMALLOC_PERSISTENT) < persistent + (1 << 20), "at line %d", __LINE__);
	claim(live(TIERMALLOC_TEMPORARY) < temporary + (1 << 20), "at line %d", __LINE__);
	return claim_end();
}
