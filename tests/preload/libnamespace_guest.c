/* SPDX-License-Identifier: MIT */
/* Opened by dlmopen, with a libc of its own. */
#include <stdlib.h>
#include <string.h>

void *guest_make(size_t size);
int guest_work(void);

void *guest_make(size_t size)
{
	return malloc(size);
}

int guest_work(void)
{
	for (size_t i = 0; i < 10000; i++) {
		char *p = malloc(i % 5000 + 1);
		memset(p, 1, i % 5000 + 1);
		free(strdup("inside"));
		free(p);
	}
	return 0;
}
