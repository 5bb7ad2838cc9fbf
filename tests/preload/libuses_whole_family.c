/* SPDX-License-Identifier: MIT */
/* A library that takes its memory by every name, whoever else defines some of them. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

int library_work(void);

int library_work(void)
{
	for (size_t i = 1; i < 3000; i++) {
		void *p = NULL;
		if (posix_memalign(&p, 64, i))
			return 1;
		memset(p, 1, i);
		free(p);
		p = aligned_alloc(64, i * 64);
		memset(p, 1, i * 64);
		free(p);
		p = memalign(32, i);
		p = realloc(p, i * 2);
		free(p);
		free(strdup("text"));
		p = calloc(i, 3);
		free(p);
		free(valloc(i));
	}
	return 0;
}
