#!/bin/bash
# SPDX-License-Identifier: MIT
# H80: a program built with AddressSanitizer or ThreadSanitizer brings its own allocator. Under our
# preload it runs as without: a clean one ends with status 0 and prints its own output only, one
# that uses freed memory is found out. Nothing of ours is printed, even where a report is asked for.
# Failure: the sanitizer's start-up crashes, or its findings are lost.
# needs: gcc
set -u
cd "$TMPDIR" || exit 1
cat > prog.c <<'END'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void *thread(void *arg) { for (int i = 0; i < 1000; i++) free(malloc((size_t)i)); return arg; }
int main(int argc, char **argv)
{
	pthread_t t;
	pthread_create(&t, NULL, thread, NULL);
	pthread_join(t, NULL);
	char *volatile p = strdup("text");
	free(p);
	if (argc > 1)
		printf("%c\n", p[0]);
	printf("%s done\n", argv[0]);
	return 0;
}
END
passed=0 failed=0 skipped=0
export TSAN_OPTIONS=exitcode=66
# ASLR with many bits breaks old ThreadSanitizer by itself: every run is compared with one alone
alone() { "$@" >alone.out 2>alone.err; }
under() { env LD_PRELOAD="$TM_LIB" "$@" >under.out 2>under.err; }

try() { # NAME COMPILER FLAGS...
	local name=$1; shift
	if ! command -v "$1" >/dev/null || ! "$@" -O1 -g -pthread -o prog prog.c 2>cc.err || ! alone ./prog; then
		echo "$name: cannot be built or run here"; skipped=$((skipped + 1)); return
	fi
	under ./prog; local clean=$?
	under ./prog bad; local bad=$?
	if [ $clean != 0 ] || [ $bad = 0 ] || ! grep -q 'Sanitizer' under.err; then
		echo "$name: clean program: status $clean, bad program: status $bad"; cat under.err
		failed=$((failed + 1)); return
	fi
	under ./prog
	if grep -q tiermalloc under.err under.out || ! cmp -s alone.out under.out; then
		echo "$name: our output in it:"; cat under.out under.err
		failed=$((failed + 1)); return
	fi
	passed=$((passed + 1))
}

try asan-static gcc -fsanitize=address -static-libasan
# the check would refuse any preload whatsoever
export ASAN_OPTIONS=verify_asan_link_order=0
try asan-shared gcc -fsanitize=address
try tsan-static gcc -fsanitize=thread -static-libtsan
try tsan-shared gcc -fsanitize=thread
try asan-clang clang -fsanitize=address
try tsan-clang clang -fsanitize=thread
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
