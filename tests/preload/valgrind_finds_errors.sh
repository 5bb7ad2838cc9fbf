#!/bin/bash
# SPDX-License-Identifier: MIT
# H81: valgrind --soname-synonyms=somalloc=libtiermalloc* replaces our entries: a clean program
# has no errors, a write behind a block and a leak are found. Without that option the program runs
# all the same, with our allocator inside.
# Failure: false errors from inside the allocator, or real ones not found.
# needs: gcc valgrind
# timeout: 180
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
run() { timeout 150 env LD_PRELOAD="$TM_LIB" valgrind -q --error-exitcode=9 --leak-check=full \
	"--soname-synonyms=somalloc=libtiermalloc*" "$@" >out 2>&1; }
run ./prog || { echo "errors in a clean program"; cat out; exit 1; }
run ./prog x && { echo "an invalid write was not found"; cat out; exit 1; }
grep -q 'Invalid write of size 1' out || { echo "no invalid write"; cat out; exit 1; }
grep -q '100 bytes in 1 blocks are definitely lost' out || { echo "no leak"; cat out; exit 1; }
timeout 150 env LD_PRELOAD="$TM_LIB" valgrind -q --soname-synonyms=somalloc=nouserintercepts ./prog >out 2>&1 ||
	{ echo "our allocator fails under valgrind"; cat out; exit 1; }
