/* SPDX-License-Identifier: MIT */
/*
 * N lookups of names that are none of ours, for other_lookups_take_few_instructions: KIND is handle,
 * default, next, prefix (a name that begins as ours do) or open.
 */
/* run: none */
#include "tests/preload/claim.h"

static void *volatile found;

int main(int argc, char **argv)
{
	const char *kind = argc > 2 ? argv[1] : "";
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	int i, n = argc > 2 ? atoi(argv[2]) : 0;
	for (i = 0; i < n; i++) {
		if (strcmp(kind, "handle") == 0)
			found = dlsym(libc, "strtol");
		else if (strcmp(kind, "default") == 0)
			found = dlsym(RTLD_DEFAULT, "strtol");
		else if (strcmp(kind, "next") == 0)
			found = dlsym(RTLD_NEXT, "strtol");
		else if (strcmp(kind, "prefix") == 0)
			found = dlsym(libc, "cuserid");
		else if (strcmp(kind, "open") == 0)
			found = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
		else
			return 2;
		if (found == NULL)
			return 3;
	}
	return 0;
}
