/* SPDX-License-Identifier: MIT */
/* preload: none */
/* args: $TM_LIB */
/*
 * H24, log 4 29: a process that runs already opens the library, directly or through one that needs
 * it, with and without RTLD_GLOBAL. Right: the loader refuses with a message and the program goes
 * on with the allocator it has. Failure: two allocators that free each other's blocks.
 */
#include "claim.h"

int main(int argc, char **argv)
{
	static void *block[3000];

	if (argc < 2 || access(argv[1], R_OK))
		return claim_skip("no library to open");
	for (size_t i = 0; i < 3000; i++)
		block[i] = malloc(i * 10 + 1);
	void *before = dlsym(RTLD_DEFAULT, "malloc");
	for (int i = 0; i < 8; i++) {
		void *h =
			dlopen(argv[1], (i & 1 ? RTLD_NOW : RTLD_LAZY) | (i & 2 ? RTLD_GLOBAL : 0) |
						(i & 4 ? RTLD_DEEPBIND : 0));
		const char *said = dlerror();
		claim(!h && said && strstr(said, "dlopen"), "opened: %s", said ? said : "-");
		free(strdup("still"));
	}
	claim(dlsym(RTLD_DEFAULT, "malloc") == before, "malloc is another one now");
	claim(!dlsym(RTLD_DEFAULT, "tiermalloc_version"), "the library is there");
	for (size_t i = 0; i < 3000; i++) {
		block[i] = realloc(block[i], i * 20 + 2);
		free(block[i]);
	}
	return claim_end();
}
