/* SPDX-License-Identifier: MIT */
/* env: TIERMALLOC_RULES="size=1025..64K -> tier=persistent huge=always" TIERMALLOC_PERSISTENT_MAX=1M */
/* stderr: tiermalloc: TIERMALLOC_RULES:1: huge and node have no effect up to 64K */
/* stderr: tiermalloc: TIERMALLOC_PERSISTENT_MAX=1M: a request of 2000 bytes was refused .* */
/*
 * Slots that a rule puts into a tier count for its ceiling, span by span; what was freed may be used for
 * other sizes at once, and what the ceiling refuses comes back with ENOMEM.
 * Failure: more than the ceiling, or less of the next size than of the first.
 */
#include "claim.h"

#define MAX ((size_t)1 << 20)

static void *block[1000];

static int many(size_t bytes)
{
	int count = 0;

	for (; count < 1000; count++) {
		errno = 0;
		block[count] = malloc(bytes);
		if (block[count] == NULL)
			break;
		memset(block[count], count, bytes);
	}
	claim(count < 1000 && errno == ENOMEM, "%d blocks of %zu bytes, error %d", count, bytes,
	      errno);
	for (int i = 0; i < count; i++)
		free(block[i]);
	return count;
}

int main(void)
{
	static const size_t size[] = {2000, 5000, 40000, 65000, 1100};

	for (int turn = 0; turn < 3; turn++) {
		for (unsigned i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
			size_t bytes = (size_t)many(size[i]) * size[i];

			claim(bytes <= MAX && bytes > MAX / 2, "%zu bytes in blocks of %zu", bytes,
			      size[i]);
		}
	}
	return claim_end();
}
