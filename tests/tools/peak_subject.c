/* SPDX-License-Identifier: MIT */
/* run: none */
/*
 * Holds 64 MiB until its standard input ends, allocating meanwhile, so that samples are taken; then
 * frees all but one block in a hundred, and ends.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCKS 65536
#define BYTES 1000

static void *block[BLOCKS];
static void *volatile sink;

__attribute__((noinline)) static void *take(void)
{
	void *p = malloc(BYTES);

	return p ? memset(p, 1, BYTES) : NULL;
}

int main(void)
{
	struct pollfd end = {.fd = 0, .events = POLLIN};
	char c;

	for (int i = 0; i < BLOCKS; i++)
		block[i] = take();
	while (poll(&end, 1, 10) == 0 || read(0, &c, 1) > 0) {
		for (int i = 0; i < 50; i++) {
			sink = malloc(70000);
			free(sink);
		}
	}
	for (int i = 0; i < BLOCKS; i++) {
		if (i % 100)
			free(block[i]);
	}
	return block[0] == NULL;
}
