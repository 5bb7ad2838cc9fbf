/* SPDX-License-Identifier: MIT */
/*
 * H02 H03, log 1 2: another preload interposes getenv, open, read, mmap, madvise, clock_gettime,
 * pthread_create and more, looks its originals up by dlsym (which allocates) under its own lock,
 * and allocates itself in each. In front of us and behind us. Failure: a hang at start-up
 * (jemalloc#329, #443, #2472) or when memory goes back, as those calls come from inside us.
 */
#include "claim.h"

#include <malloc.h>
#include <pthread.h>

static void *work(void *seed)
{
	unsigned n = (unsigned)(uintptr_t)seed;

	for (int round = 0; round < 20; round++) {
		static __thread char *block[300];
		for (unsigned i = 0; i < 300; i++) {
			size_t size = i % 50 ? i * n % 3000 + 1 : (size_t)400000 * (i / 50 + 1);
			block[i] = malloc(size);
			memset(block[i], 1, size > 100000 ? 100000 : size);
		}
		for (unsigned i = 0; i < 300; i++)
			free(block[i]);
		malloc_trim(0);
	}
	return NULL;
}

static int child(void)
{
	pthread_t thread[4];
	int (*count)(const char *);
	void *found = dlsym(RTLD_DEFAULT, "shim_count");

	claim(found, "the shim is not there");
	if (!found)
		return 1;
	memcpy(&count, &found, sizeof(found));
	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, work, (void *)(i + 3));
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	char *p = NULL;
	for (size_t size = 1 << 20; size < 64 << 20; size += 1 << 20)
		p = realloc(p, size);
	free(p);
	claim(count("pthread_create") == 4, "pthread_create was seen %d times",
	      count("pthread_create"));
	claim(getenv("HOME") == getenv("HOME") && count("getenv") >= 2, "getenv");
	return claim_end();
}

int main(int argc, char **argv)
{
	static struct claim_output out;
	const char *shim = claim_beside("libcall_shim.so");

	(void)argv;
	if (argc > 1)
		return child();
	const char *lists[] = {claim_join(shim, claim_preload()),
			       claim_join(claim_preload(), shim)};
	for (int i = 0; i < 2; i++) {
		char *ls[] = {(char[]){"ls"}, (char[]){"-la"}, (char[]){"/proc/self"}, NULL};
		char *ldd[] = {(char[]){"ldd"}, (char[]){"/bin/bash"}, NULL};
		char *sh[] = {
			(char[]){"bash"}, (char[]){"-c"},
			(char[]){"for i in 1 2 3; do x=$(echo $(ls / | wc -l)); done; echo $x"},
			NULL};
		char *const *commands[] = {ls, ldd, sh};
		for (int c = 0; c < 3; c++) {
			int status = claim_run(lists[i], commands[c], &out);
			claim(status == 0 && out.length, "%s under '%s': %d, %.200s",
			      commands[c][0], lists[i], status, out.text);
		}
		int status = claim_again(lists[i], "child", &out);
		claim(status == 0, "'%s': %d, %.300s", lists[i], status, out.text);
	}
	return claim_end();
}
