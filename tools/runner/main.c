/* SPDX-License-Identifier: MIT */
/*
 * yi-coder-run: text generation from a GGUF model. Reads the command line and calls the verbs.
 */
#include <stdio.h>
#include <string.h>

#include "config.h"

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		printf("yi-coder-run %s\n", PACKAGE_VERSION);
		return 0;
	}
	fprintf(stderr, "yi-coder-run: no model given, name one with -m MODEL.gguf\n");
	return 2;
}
