#!/bin/bash
# SPDX-License-Identifier: MIT
# needs: cc
# The frame that a report names is not the wrapper that a program has around malloc, but who called it.
set -u
cat >w.c <<'C'
#include <stdlib.h>
#define NI __attribute__((noinline, noclone))
void *volatile kept[64];
NI void *xmalloc(size_t n) { void *p = malloc(n); if (!p) abort(); return p; }
NI void *g_malloc0(size_t n) { void *p = calloc(1, n); if (!p) abort(); return p; }
NI static void asks(int i) { kept[i] = xmalloc(1000); kept[i + 32] = g_malloc0(2000); __asm__ volatile(""); }
int main(void) { for (int i = 0; i < 32; i++) asks(i); return 0; }
C
cc -g -O1 -fno-builtin -o w w.c || exit 1
TIERMALLOC_DIR=$PWD/l LD_PRELOAD=$TM_LIB ./w || exit 1
"$TM_BUILD/tiermalloc" report l/*.tm >out
[ "$(grep -c '  asks  w.c:6' out)" -ge 2 ] && ! grep -q ' xmalloc \| g_malloc0 ' out || { cat out; exit 1; }
