/* SPDX-License-Identifier: MIT */
/*
 * H21, the other way: with TIERMALLOC_DEEPBIND=keep the flag stays, the plug-in's own malloc is
 * libc's, and such a stranger's block is still freed, measured and grown by ours; with a list of
 * globs this holds for the libraries of the list only. Failure: abort on a pointer of libc's, or
 * the flag dropped or kept in spite of the wish.
 */
#include "claim.h"

#include <malloc.h>

static int plug_in(bool kept)
{
	char *(*plugin_malloc)(size_t);
	void *(*plugin_realloc)(void *, size_t);
	void *h = dlopen("libdeep_plugin.so", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);

	claim(h, "dlopen: %s", dlerror());
	if (!h)
		return 1;
	void *found[2] = {dlsym(h, "plugin_malloc"), dlsym(h, "plugin_realloc")};
	memcpy(&plugin_malloc, &found[0], sizeof(found[0]));
	memcpy(&plugin_realloc, &found[1], sizeof(found[1]));

	/* libc's own heap begins at the break: where a block of libc's malloc must lie */
	char *p = plugin_malloc(100);
	char *top = sbrk(0);
	if (claim_ours())
		claim((p < top && p > top - (1 << 20)) == kept, "the plug-in got %p, break %p",
		      (void *)p, (void *)top);
	for (int i = 0; i < 20000; i++) {
		size_t size = (size_t)(i * 37 % 300000) + 1;
		char *q = plugin_malloc(size);
		claim(malloc_usable_size(q) >= size, "usable size of libc's block");
		memset(q, i, size);
		if (i % 3 == 0) {
			char *r = realloc(q, size * 2);
			claim(r && r[0] == (char)i && r[size - 1] == (char)i,
			      "realloc of libc's block");
			q = r;
		}
		free(q);
	}
	free(p);
	return claim_end();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *value, *part;
	} runs[] = {{"keep", "kept"},
		    {"libdeep_*", "kept"},
		    {"none*,*deep_plugin*", "kept"},
		    {"libother*", "dropped"},
		    {"drop", "dropped"}};
	static struct claim_output out;

	if (argc > 1)
		return plug_in(strcmp(argv[1], "kept") == 0);
	for (size_t i = 0; i < sizeof(runs) / sizeof(*runs); i++) {
		setenv("TIERMALLOC_DEEPBIND", runs[i].value, 1);
		int status = claim_again(claim_preload(), runs[i].part, &out);
		claim(status == 0, "DEEPBIND=%s: %d, %.300s", runs[i].value, status, out.text);
	}
	return claim_end();
}
