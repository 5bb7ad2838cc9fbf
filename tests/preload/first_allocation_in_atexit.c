/* SPDX-License-Identifier: MIT */
/*
 * H05, log 7: the first allocation of a program happens inside atexit, which holds its own lock
 * and takes a new table by calloc at the 33rd entry; an allocator that registers an exit handler
 * from there hangs. The handlers allocate and free when they run. Failure: no end, or a crash at
 * exit.
 */
#include <stdlib.h>
#include <unistd.h>

static void *blocks[2000];
static int left = 2000;

static void at_exit(void)
{
	free(blocks[--left]);
	blocks[left] = malloc(30);
	free(blocks[left]);
	if (left == 0)
		_exit(0);
}

int main(void)
{
	for (int i = 0; i < 2000; i++)
		if (atexit(at_exit))
			return 1;
	for (size_t i = 0; i < 2000; i++)
		blocks[i] = malloc(i * 10);
	return 2; /* only the last handler's status counts */
}
