/* SPDX-License-Identifier: MIT */
/*
 * The program of damaged_tables_are_survived.py: damage_subject LIBRARY...: calls into each, in a signal handler
 * too, and closes it.
 */
/* run: none */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *(*entry)(int depth);

static void handler(int number)
{
	(void)number;
	for (int i = 0; i < 3; i++)
		free(entry(i));
}

int main(int argc, char **argv)
{
	signal(SIGUSR1, handler);
	for (int i = 1; i < argc; i++) {
		void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
		void *symbol = library == NULL ? NULL : dlsym(library, "entry");

		if (symbol == NULL)
			continue;
		memcpy(&entry, &symbol, sizeof(entry));
		for (int k = 0; k < 40; k++) {
			free(entry(k));
			if (k % 10 == 0)
				raise(SIGUSR1);
		}
		for (size_t k = 0; k < 2000; k++)
			free(malloc(k * 10));
		dlclose(library);
	}
	puts("done");
	return 0;
}
