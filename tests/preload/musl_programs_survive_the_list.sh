#!/bin/bash
# SPDX-License-Identifier: MIT
# H25: a program of musl meets us in LD_PRELOAD. Its loader takes our need of libc.so.6 for itself
# and ends the program when a symbol is missing, so that a shell would be dead. Right: the program
# runs, with or without us. Failure: status 127 or a hang.
# needs: musl-gcc
set -u
[ -r "$TM_LIB" ] || { echo "no library"; exit 77; }
cat > p.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void)
{
	for (int i = 1; i < 20000; i++) {
		char *p = malloc(i), *q = strdup("text");
		memset(p, 1, i);
		free(realloc(p, i * 3));
		free(q);
	}
	puts("ok");
	return 0;
}
C
musl-gcc -o p p.c || { echo "musl-gcc does not work"; exit 77; }
[ "$(./p)" = ok ] || { echo "musl programs do not run here"; exit 77; }
said=$(LD_PRELOAD=$TM_LIB ./p 2>&1)
status=$?
[ $status = 0 ] && [ "$(tail -1 <<<"$said")" = ok ] || { echo "status $status: $said" | head -20; exit 1; }
