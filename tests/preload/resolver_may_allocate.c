/* SPDX-License-Identifier: MIT */
/*
 * H01: the resolver of an indirect function of the program runs while the program is being relocated:
 * thread-local variables have no values yet. It may allocate, resize and free all the same, and what
 * it keeps is a block like others later.
 */
#include "claim.h"

static char *kept;

static int answer(void)
{
	return 42;
}

static int (*resolve(void))(void)
{
	char *p = malloc(100), *q = calloc(10, 30), *r = malloc(7000);

	p[0] = 'p';
	q[299] = 'q';
	r[6999] = 'r';
	kept = realloc(p, 4000);
	free(q);
	free(r);
	return answer;
}

int question(void) __attribute__((ifunc("resolve")));

int main(void)
{
	claim(question() == 42, "the function was not found");
	claim(kept != NULL && kept[0] == 'p', "the resolver's block lost its content");
	memset(kept, 1, 4000);
	char *more = realloc(kept, 8000);
	claim(more != NULL && more[3999] == 1, "it cannot be resized later");
	free(more);
	for (int i = 0; i < 1000; i++)
		free(malloc((size_t)i * 10));
	return claim_end();
}
