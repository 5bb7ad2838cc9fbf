/* SPDX-License-Identifier: MIT */
/* Blocks of many lengths for a child to find. */
#ifndef TESTS_PRELOAD_INHERITED_H
#define TESTS_PRELOAD_INHERITED_H

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "probe.h"
#include <sys/syscall.h>

static const size_t inherited_sizes[] = {0,    1,    16,   24,    100,   1000,  1024,  1025,
					 1500, 5000, 9000, 20000, 40000, 65536, 70000, 300000};
#define INHERITED_SIZES (sizeof(inherited_sizes) / sizeof(*inherited_sizes))

struct inherited {
	char *block[INHERITED_SIZES][4]; /* the last two are aligned */
	char *longer;                    /* 1500 bytes */
};

static inline char *inherited_hide(char *p)
{
	__asm__ volatile("" : "+r"(p) : : "memory");
	return p;
}

static void inherited_make(struct inherited *all)
{
	all->longer = malloc(1500);
	for (size_t i = 0; i < INHERITED_SIZES; i++)
		for (size_t k = 0; k < 4; k++) {
			size_t bytes = inherited_sizes[i];

			all->block[i][k] = k < 2 ? malloc(bytes) : memalign(64, bytes);
			memset(all->block[i][k], (int)i + 1, bytes);
		}
}

static void inherited_resize(struct inherited *all)
{
	for (size_t i = 0; i < INHERITED_SIZES; i++)
		for (size_t k = 0; k < 4; k++) {
			size_t bytes = inherited_sizes[i], usable;
			char *p = all->block[i][k];

			usable = malloc_usable_size(p);
			probe_require(usable >= bytes, "usable size of %zu", bytes);
			/* all of it is the program's */
			memset(inherited_hide(p) + bytes, 1, usable - bytes);
			p = realloc(p, bytes * 2 + 40);
			probe_require(p != NULL, "realloc of %zu", bytes);
			for (size_t at = 0; at < bytes; at++)
				probe_require(p[at] == (char)(i + 1), "content of %zu", bytes);
			free(p);
		}
}

/*
 * In a child that no handler prepared, which looks first when its parent has freed the same blocks: what
 * they share, the entries of a ledger, says so.
 */
static inline void inherited_by_raw_child(void)
{
	struct inherited all;
	int go[2];
	char c = 0;

	inherited_make(&all);
	probe_require(pipe(go) == 0, "no pipe");
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0) {
		probe_require(read(go[0], &c, 1) == 1, "no word of the parent");
		inherited_resize(&all);
		_exit(0);
	}
	inherited_resize(&all);
	probe_require(write(go[1], &c, 1) == 1, "no word to the child");
	probe_child_ok(pid, "raw child");
	free(all.longer);
}

#endif
