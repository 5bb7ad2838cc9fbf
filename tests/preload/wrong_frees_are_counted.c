/* SPDX-License-Identifier: MIT */
/*
 * H14 H20 H21: what was ignored, handed to libc or bound otherwise is told by the report, each kind
 * with its number, the first of each kind in a line when it happens, and a program without such things
 * has no such lines. Failure: a mistake that nobody hears of, or libc's own frees of early memory counted as
 * mistakes.
 */
#include "claim.h"

static char variable[256] __attribute__((aligned(16)));

static void *hide(void *p)
{
	return claim_hide(p);
}

static void mistakes(void)
{
	char *(*plugin_malloc)(size_t);
	char *small = malloc(200), *large = malloc(3 << 20);

	for (int i = 0; i < 3; i++)
		free(hide(variable + 16 * i));
	free(hide(small + 16));
	free(hide(large + 4096));
	free(small);
	for (int i = 0; i < 4; i++)
		free(hide(small));
	free(large);
	void *h = dlopen("libdeep_plugin.so", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
	void *found = h ? dlsym(h, "plugin_malloc") : NULL;
	claim(found, "the plug-in is not there");
	memcpy(&plugin_malloc, &found, sizeof(found));
	for (size_t i = 0; i < 5; i++)
		free(plugin_malloc(100 * i)); /* libc's, as its flag was kept */
}

static long count(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtol(at + strlen(name), NULL, 10) : 0;
}

static long lines_of(const char *text, const char *start)
{
	long lines = 0;

	for (; (text = strstr(text, start)) != NULL; text++)
		lines++;
	return lines;
}

int main(int argc, char **argv)
{
	static const char *const told[] = {
		"tiermalloc: free of an address that was never allocated: 0x",
		"tiermalloc: free of an address inside a block: 0x",
		"tiermalloc: free of a block that is free: 0x",
		": ignored and counted, as are later ones; TIERMALLOC_ON_ERROR='abort' stops at the "
		"first\n",
	};
	static struct claim_output out;
	static const struct {
		const char *name;
		long made;
	} wanted[] = {{"wrong frees", 3},
		      {"interior frees", 2},
		      {"double frees", 4},
		      {"foreign frees", 5}};

	if (!claim_ours())
		return claim_skip("the report is ours");
	if (argc > 1) {
		if (strcmp(argv[1], "mistakes") == 0)
			mistakes();
		free(strdup("done"));
		return claim_end();
	}
	setenv("TIERMALLOC_REPORT", "exit", 1);
	setenv("TIERMALLOC_DEEPBIND", "keep", 1);
	for (int i = 0; i < 2; i++) {
		int status = claim_again(claim_preload(), i ? "mistakes" : "none", &out);
		claim(status == 0 && strstr(out.text, "report of process"), "%d, %.300s", status,
		      out.text);
		for (size_t k = 0; k < sizeof(wanted) / sizeof(*wanted); k++)
			claim(count(out.text, wanted[k].name) == (i ? wanted[k].made : 0),
			      "'%s' is %ld, not %ld", wanted[k].name,
			      count(out.text, wanted[k].name), i ? wanted[k].made : 0);
		for (size_t k = 0; k < sizeof(told) / sizeof(*told); k++)
			claim(lines_of(out.text, told[k]) == (i ? k == 3 ? 3 : 1 : 0),
			      "'%s' is told %ld times", told[k], lines_of(out.text, told[k]));
	}
	return claim_end();
}
