/* SPDX-License-Identifier: MIT */
/*
 * A library that has a runtime inside, as cuBLAS has: its blocks are those of who called it, each call by
 * itself, and not of an address inside. Who is called by nobody but libc's start of a thread stays itself.
 */
/* libs: libcuda.so.1 */
/* preload: none */
#include "tests/cuda/seen.h"

#include <pthread.h>

static int (*create)(void **, size_t);
static void *(*run)(void *);
static volatile int calls;

__attribute__((noinline)) static void first(void **ret)
{
	ok(create(ret, 3 * MIB));
	calls++;
}

__attribute__((noinline)) static void second(void **ret)
{
	ok(create(ret, 5 * MIB));
	calls++;
}

/* How often a site or a figure stands among those of devices. */
static int times(const char *text, const char *what)
{
	const char *at = strstr(text, "\"gpu\":"), *end;
	int count = 0;
	if (at == NULL || (end = strstr(at, "\"gpu_pools\":")) == NULL)
		return -1;
	while ((at = strstr(at, what)) != NULL && at < end) {
		count++;
		at++;
	}
	return count;
}

static int part(void)
{
	void *library = dlopen(claim_beside("libstatic_blas.so"), RTLD_NOW), *fn, *p;
	const char *text;
	pthread_t thread;
	int i;
	claim(library != NULL, "%s", dlerror());
	fn = dlsym(library, "blas_create");
	memcpy(&create, &fn, sizeof(fn));
	for (i = 0; i < 3; i++)
		first(&p);
	second(&p);
	second(&p);
	fn = dlsym(library, "blas_thread");
	memcpy(&run, &fn, sizeof(fn));
	claim(pthread_create(&thread, NULL, run, &p) == 0 && pthread_join(thread, NULL) == 0);
	text = seen_told("--json");
	/* Blocks of each, in the order of their bytes. */
	claim(times(text, "runtimes_inside_name_their_caller+0x") == 2, "%s", text);
	claim(times(text, "libstatic_blas.so+0x") == 1, "%s", text);
	claim(times(text, "\"live_bytes\":10485760,") == 1, "%s", text);
	claim(times(text, "\"live_bytes\":9437184,") == 1, "%s", text);
	claim(times(text, "\"live_bytes\":7340032,") == 1, "%s", text);
	return claim_end();
}

int main(int argc, char **argv)
{
	(void)argv;
	return seen_with_ledger(argc, part);
}
