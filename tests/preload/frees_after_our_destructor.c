/* SPDX-License-Identifier: MIT */
/* preload: @ libstatic_holder.so */
/* env: TIERMALLOC_REPORT=exit TIERMALLOC_REPORT_FILE=$TMPDIR/report */
/*
 * H18, log 49: a static object of a library loaded before us frees in its destructor, exit
 * handlers allocate, and detached threads go on allocating while the process exits, with a
 * report written meanwhile. 30 times. Failure: a crash or hang because heaps were torn down.
 */
#include "claim.h"

#include <pthread.h>

static void *run(void *unused)
{
	for (;;) {
		static __thread void *block[64];
		for (int i = 0; i < 64; i++)
			block[i] = malloc((size_t)i * 100);
		for (int i = 0; i < 64; i++)
			free(block[i]);
	}
	return unused;
}

static void late(void)
{
	for (int i = 0; i < 20000; i++)
		free(malloc((size_t)i % 4000));
}

int main(int argc, char **argv)
{
	static struct claim_output out;
	pthread_t thread;

	(void)argv;
	if (argc > 1) {
		atexit(late);
		for (int i = 0; i < 6; i++) {
			pthread_create(&thread, NULL, run, NULL);
			pthread_detach(thread);
		}
		usleep(2000);
		exit(0);
	}
	for (int i = 0; i < 30; i++) {
		int status = claim_again(claim_preload(), "child", &out);
		claim(status == 0, "run %d: status %d, %.200s", i, status, out.text);
	}
	return claim_end();
}
