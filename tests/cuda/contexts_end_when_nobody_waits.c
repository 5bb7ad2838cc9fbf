/* SPDX-License-Identifier: MIT */
/*
 * A free waits for the other contexts of its device, which the program knows nothing of: another thread may
 * end one of them meanwhile. No call of ours uses a context that is no more: every one that is made current is
 * there.
 */
/* libs: libcuda.so.1 */
/* preload: none */
#include "tests/cuda/modes.h"

#include <pthread.h>

#define CONTEXTS 400

static _Atomic bool over;

static void *come_and_go(void *unused)
{
	int i;
	(void)unused;
	for (i = 0; i < CONTEXTS; i++) {
		CUcontext own;
		CUdeviceptr p;
		ok(cuCtxCreate_v2(&own, 0, 0));
		ok(cuMemAlloc_v2(&p, MIB));
		ok(cuMemFree_v2(p));
		ok(cuCtxDestroy_v2(own));
	}
	over = true;
	return NULL;
}

static void body(const char *mode)
{
	pthread_t other;
	char line[256];
	FILE *trace;
	int gone = 0;
	claim_context();
	pthread_create(&other, NULL, come_and_go, NULL);
	while (!over) {
		CUdeviceptr p;
		ok(cuMemAlloc_v2(&p, MIB));
		ok(cuMemFree_v2(p));
	}
	pthread_join(other, NULL);
	trace = fopen(getenv("TMFAKE_TRACE"), "re");
	claim(trace != NULL);
	while (trace != NULL && fgets(line, sizeof(line), trace) != NULL)
		gone += strstr(line, "cuCtxPushCurrent_v2") != NULL && strstr(line, " 0\n") == NULL;
	if (trace != NULL)
		fclose(trace);
	claim(gone == 0, "%s: %d times", mode, gone);
}

int main(int argc, char **argv)
{
	setenv("TMFAKE_TRACE", "trace", 1);
	return modes_run(argc, argv, body, MODES_POOL | MODE_AUTO | MODE_EVENT);
}
