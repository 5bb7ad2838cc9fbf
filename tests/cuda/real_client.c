/* SPDX-License-Identifier: MIT */
/* run: none */
/*
 * real_client LIBRARY FLAGS FUNCTION...: opens somebody's library and calls functions of it that make
 * it bind the driver, each with two arguments that fit cudaMalloc, cublasCreate and their like. Prints
 * what they return. A child of real_runtimes_bind_as_before.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	void *handle, *fn, *p = NULL;
	int (*call)(void **, size_t), i;
	if (argc < 4)
		return 2;
	handle = dlopen(argv[1], atoi(argv[2]));
	if (handle == NULL) {
		printf("%s\n", dlerror());
		return 3;
	}
	for (i = 3; i < argc; i++) {
		fn = dlsym(handle, argv[i]);
		if (fn == NULL) {
			printf("%s\n", dlerror());
			return 4;
		}
		memcpy(&call, &fn, sizeof(fn));
		printf("%s: %d\n", argv[i], call(&p, 1 << 20));
	}
	fflush(stdout);
	return 0;
}
