/* SPDX-License-Identifier: MIT */
/*
 * yi-coder-run: text generation from a GGUF model.  Finds the verb.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "tools/runner/error.h"
#include "tools/runner/run.h"
#include "tools/runner/serve.h"

static const char usage[] =
	"usage: yi-coder-run -m MODEL.gguf -p TEXT [-n TOKENS] [--greedy] [OPTION ...]\n"
	"       yi-coder-run serve-load -m MODEL.gguf --sessions N --concurrency M [OPTION ...]\n"
	"       yi-coder-run make-model --shape tiny -o MODEL.gguf [OPTION ...]\n"
	"       yi-coder-run info MODEL.gguf [OPTION ...]\n"
	"\n"
	"Answers a prompt, serves many sessions at once, writes a model from a seed, or\n"
	"shows what a model file holds.  To try it without a download:\n"
	"\n"
	"  yi-coder-run make-model --shape tiny -o tiny.gguf\n"
	"  yi-coder-run -m tiny.gguf -p 'int main' -n 16\n"
	"\n"
	"All options: man yi-coder-run\n";

/*
 * A file that is opened later must not get the number of a standard stream that is closed: opens
 * closed ones such that using them fails.
 */
static void hold_standard_files(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) < 0)
			return;
}

static int say(const char *text)
{
	if (fputs(text, stdout) != EOF && fflush(stdout) == 0)
		return 0;
	fputs("yi-coder-run: the answer cannot be written\n", stderr);
	return YI_EXIT_TROUBLE;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";

	hold_standard_files();
	/*
	 * Exceeding the file size limit is an error like a full disk, to be reported and cleaned
	 * up.
	 */
	signal(SIGXFSZ, SIG_IGN);
	if (strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0)
		return say(usage);
	if (argc == 2 && strcmp(verb, "--version") == 0)
		return say("yi-coder-run " PACKAGE_VERSION "\n");
	if (strcmp(verb, "make-model") == 0)
		return yi_make_model_main(argc, argv);
	if (strcmp(verb, "info") == 0)
		return yi_info_main(argc, argv);
	if (strcmp(verb, "serve-load") == 0)
		return yi_serve_main(argc, argv);
	if (*verb && *verb != '-') {
		fprintf(stderr, "yi-coder-run: unknown command '%s', see yi-coder-run --help\n",
			verb);
		return YI_EXIT_USAGE;
	}
	return yi_run_main(argc, argv);
}
