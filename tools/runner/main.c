/* SPDX-License-Identifier: MIT */
/*
 * yi-coder-run: text generation from a GGUF model.  Finds the verb.
 */
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "tools/runner/run.h"
#include "tools/runner/serve.h"

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";

	if (argc == 2 && strcmp(verb, "--version") == 0) {
		printf("yi-coder-run %s\n", PACKAGE_VERSION);
		return 0;
	}
	if (strcmp(verb, "make-model") == 0)
		return yi_make_model_main(argc, argv);
	if (strcmp(verb, "info") == 0)
		return yi_info_main(argc, argv);
	if (strcmp(verb, "serve-load") == 0)
		return yi_serve_main(argc, argv);
	return yi_run_main(argc, argv);
}
