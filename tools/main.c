/* SPDX-License-Identifier: MIT */
/*
 * tiermalloc: the command. Dispatches to one cmd_*.c per verb.
 */
#include <stdio.h>
#include <string.h>

#include "shim/base/version.h"

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		printf("tiermalloc %s\n", tm_version_string());
		return 0;
	}
	fprintf(stderr, "tiermalloc: no command given, try 'tiermalloc --version'\n");
	return 2;
}
