/* SPDX-License-Identifier: MIT */
/* run: none */
/* Asks for memory a few times, none of it for much, fills it and waits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int main(void)
{
	static char *volatile kept[24];

	for (int i = 0; i < 24; i++) {
		kept[i] = malloc(2 << 20);
		if (kept[i] == NULL)
			return 1;
		nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
		if (i < 23)
			memset(kept[i], 1, 2 << 20);
	}
	/* What comes now is behind the last call. */
	memset(kept[23], 1, 2 << 20);
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
