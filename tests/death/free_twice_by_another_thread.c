/* SPDX-License-Identifier: MIT */
/* env: TIERMALLOC_ON_ERROR=abort */
/* dies: SIGABRT */
/* stderr: tiermalloc: free of a block that is free: 0x[0-9a-f]+ */
/* H20: a block that its owner freed is freed again by another thread. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

static void *hide(void *p)
{
	__asm__ volatile("" : "+r"(p) : : "memory");
	return p;
}

#include <pthread.h>

static void *again(void *p)
{
	free(hide(p));
	return NULL;
}

int main(void)
{
	pthread_t thread;
	void *p = malloc(500);

	free(p);
	pthread_create(&thread, NULL, again, hide(p));
	pthread_join(thread, NULL);
	for (int i = 0; i < 100000; i++) /* a handed-over block is looked at later */
		free(malloc(500));
	return 0;
}
