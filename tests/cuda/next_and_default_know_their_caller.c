/* SPDX-License-Identifier: MIT */
/*
 * RTLD_NEXT and RTLD_DEFAULT mean what they mean from the caller's place, in a library opened
 * RTLD_LOCAL too, for names that begin with cu as for others, the thousandth time as the first, from
 * eight threads at once (HAMi-core#315, #279).
 */
/* build: -rdynamic */
#include "tests/cuda/claim.h"

#include <pthread.h>

int only_here(void);
int cuda_only_here(void);

int only_here(void)
{
	return 42;
}

int cuda_only_here(void)
{
	return 42;
}

static int (*next)(const char *);
static int (*by_default)(const char *);

static void *many(void *unused)
{
	int i;
	for (i = 0; i < 1000; i++) {
		claim(next("chain") == 2 && next("cuda_chain") == 2);
		claim(by_default("only_here") == 42 && by_default("cuda_only_here") == 42);
		claim(next("cuda_nowhere") == -1 && by_default("cuda_nowhere") == -1);
	}
	return unused;
}

int main(void)
{
	void *library = dlopen("libchain1.so", RTLD_NOW | RTLD_LOCAL);
	pthread_t thread[8];
	int i;
	claim(library != NULL, "%s", dlerror());
	next = (int (*)(const char *))dlsym(library, "chain_next");
	by_default = (int (*)(const char *))dlsym(library, "chain_default");
	claim(dlsym(RTLD_DEFAULT, "chain") == NULL, "it is local");
	for (i = 0; i < 8; i++)
		pthread_create(&thread[i], NULL, many, NULL);
	for (i = 0; i < 8; i++)
		pthread_join(thread[i], NULL);
	return claim_end();
}
