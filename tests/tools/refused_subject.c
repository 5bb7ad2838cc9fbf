/* SPDX-License-Identifier: MIT */
/* For refusals_are_kept.sh: asks for too much, three times, and dies of it. */
/* run: none */
#include <signal.h>
#include <stdlib.h>

int main(void)
{
	void *volatile p = NULL;

	for (int i = 0; i < 3; i++)
		p = malloc((size_t)8 << 20);
	if (p == NULL)
		raise(SIGKILL);
	return 1;
}
