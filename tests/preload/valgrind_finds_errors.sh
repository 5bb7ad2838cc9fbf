#!/bin/bash
# SPDX-License-Identifier: MIT
# H81: valgrind --soname-synonyms=somalloc=libtiermalloc* replaces our entries: a clean program
# has no errors, a write behind a block and a leak are found. Without that option the program runs
# all the same, with our allocator inside.
# Failure: false errors from inside the allocator, or real ones not found.
# needs: gcc valgrind
set -u
cd "$TMPDIR" || exit 1
cat > prog.c <<'END'
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv)
{
	char *p = malloc(100), *q = NULL;
	if (posix_memalign((void **)&q, 256, 5000) != 0)
		return 3;
	q = realloc(q, 100000);
	memset(p, 1, 100);
	memset(q, 1, 100000);
	if (argc > 1)
		((volatile char *)p)[100] = argv[1][0];
	free(q);
	if (argc <= 1)
		free(p);
	return 0;
}
END
gcc -O0 -g -fno-builtin -o prog prog.c || exit 1
run() { env LD_PRELOAD="$TM_LIB" valgrind -q --error-exitcode=9 --leak-check=full \
	"--soname-synonyms=somalloc=libtiermalloc*" "$@" >out 2>&1; }
run ./prog || { echo "errors in a clean program"; cat out; exit 1; }
run ./prog x && { echo "an invalid write was not found"; cat out; exit 1; }
grep -q 'Invalid write of size 1' out || { echo "no invalid write"; cat out; exit 1; }
grep -q '100 bytes in 1 blocks are definitely lost' out || { echo "no leak"; cat out; exit 1; }
env LD_PRELOAD="$TM_LIB" valgrind -q --soname-synonyms=somalloc=nouserintercepts ./prog >out 2>&1 ||
	{ echo "our allocator fails under valgrind"; cat out; exit 1; }

# names that valgrind does not know, with those that it does
cat > family.c <<'END'
#define _GNU_SOURCE
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_memalign(size_t, size_t);
void *__libc_realloc(void *, size_t);
void __libc_free(void *);
int main(void)
{
	void *p[] = {reallocarray(NULL, 100, 10), reallocarray(malloc(10), 100, 10), pvalloc(100),
		     __libc_malloc(10), __libc_calloc(1, 10), __libc_memalign(64, 10),
		     __libc_realloc(malloc(10), 100), aligned_alloc(64, 640), valloc(10)};
	for (size_t i = 0; i < sizeof(p) / sizeof(*p); i++) {
		memset(p[i], 1, 10);
		free(p[i]);
	}
	__libc_free(malloc(10));
	return 0;
}
END
gcc -O0 -g -w -fno-builtin -o family family.c || exit 1
run ./family || { echo "errors where names meet that valgrind does not know"; cat out; exit 1; }
env LD_PRELOAD="$TM_LIB" valgrind -q --error-exitcode=9 ./family >out 2>&1 ||
	{ echo "the same without the option"; cat out; exit 1; }
