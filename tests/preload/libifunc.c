/* SPDX-License-Identifier: MIT */
/* A function that is chosen while the library is relocated, by code that allocates. */
#include <stdlib.h>
#include <string.h>

int ifunc_answer(void);
int ifunc_call(void);

static int answer(void)
{
	return 42;
}

#if defined(__x86_64__)
typedef int answer_fn(void);

__attribute__((used)) static answer_fn *choose(void)
{
	char *small = malloc(100), *block = malloc(300000);

	if (small == NULL || block == NULL)
		abort();
	memset(small, 1, 100);
	memset(block, 2, 300000);
	small = realloc(small, 5000);
	if (small == NULL || small[99] != 1)
		abort();
	free(small);
	free(block);
	free(calloc(10, 10));
	return answer;
}

int ifunc_answer(void) __attribute__((ifunc("choose")));
#else
int ifunc_answer(void)
{
	return answer();
}
#endif

int ifunc_call(void)
{
	return ifunc_answer();
}
