#!/bin/bash
# SPDX-License-Identifier: MIT
# H27: a set-user-id program that has the library (here because it is linked with it; the loader
# drops a path from LD_PRELOAD) reads no variable of ours and writes no file, while the same
# program without privilege does. And one that is preloaded by path simply runs without us.
# Failure: a file that an unprivileged user made a root program write.
# needs: cc runuser
set -u
[ "$(id -u)" = 0 ] || { echo "needs root to make a set-user-id program"; exit 77; }
[ -r "$TM_LIB" ] || { echo "no library"; exit 77; }
id nobody >/dev/null 2>&1 || { echo "no user 'nobody'"; exit 77; }
work=$(mktemp -d /var/tmp/tm-suid.XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
cp "$TM_LIB" "$work/libtiermalloc.so"
chmod 644 "$work/libtiermalloc.so"
mkdir -m 1777 "$work/out"
cat > "$work/p.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
extern const char *tiermalloc_version(void) __attribute__((weak));
int main(void)
{
	void *volatile p[64];
	for (int i = 0; i < 64; i++)
		p[i] = memset(malloc(1 << 20), 1, 1 << 20); /* enough to make a ledger */
	for (int i = 0; i < 64; i++)
		free(p[i]);
	printf("secure %lu, library %d\n", getauxval(AT_SECURE), tiermalloc_version != NULL);
	return 0;
}
C
cc -o "$work/linked" "$work/p.c" -Wl,--no-as-needed "$work/libtiermalloc.so" -Wl,-rpath,"$work" || exit 1
cc -o "$work/plain" "$work/p.c" || exit 1
chmod 4755 "$work/linked" "$work/plain"
cp "$work/linked" "$work/ordinary" && chmod 755 "$work/ordinary"
if ! runuser -u nobody -- "$work/linked" | grep -q '^secure 1'; then
	echo "the file system ignores set-user-id"
	exit 77
fi

fail=0
as_nobody() {
	rm -rf "$work"/out/*
	said=$(runuser -u nobody -- env "$@" 2>&1)
	files=$(ls "$work/out")
}
settings=(TIERMALLOC_REPORT=exit "TIERMALLOC_REPORT_FILE=$work/out/report" "TIERMALLOC_DIR=$work/out/dir"
	"TIERMALLOC_TRACE=$work/out/trace" TIERMALLOC_GUARD=nonsense)
as_nobody "${settings[@]}" "$work/ordinary"
[ -n "$files" ] || { echo "the unprivileged program wrote no report: $said"; fail=1; }
as_nobody "${settings[@]}" "$work/linked"
[ "$said" = "secure 1, library 1" ] || { echo "privileged: $said"; fail=1; }
[ -z "$files" ] || { echo "the privileged program wrote $files"; fail=1; }
as_nobody "LD_PRELOAD=$work/libtiermalloc.so" "${settings[@]}" "$work/plain"
case $said in *"secure 1, library 0") ;; *) echo "preloaded: $said"; fail=1 ;; esac
[ -z "$files" ] || { echo "the preloaded program wrote $files"; fail=1; }
exit $fail
