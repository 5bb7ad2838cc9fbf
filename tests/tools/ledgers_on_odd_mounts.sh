#!/bin/bash
# SPDX-License-Identifier: MIT
# A directory of ledgers that is read-only, has no room or no names left: the program runs and a line says so.
# One whose file system gives huge pages (tmpfs, huge=always): a ledger takes what it holds, not 2 MiB for each
# table that has a page.
set -u
if [ "${1-}" != inside ]; then
	unshare -rm true 2>/dev/null || { echo "no namespace of its own here"; exit 77; }
	exec unshare -rm "$0" inside
fi
fail=0
mkdir place
# lines of warning, most KiB, options of the mount
look() {
	local lines=$1 kib=$2 used
	mount -t tmpfs -o "$3" none place 2>/dev/null || { echo "$3: no such mount here"; return; }
	LD_PRELOAD=$TM_LIB TIERMALLOC_DIR=$PWD/place/ledgers "$TM_TESTS/odd_places_subject" >out 2>err
	[ $? = 0 ] && [ "$(cat out)" = done ] || { echo "$3: not as without"; fail=1; }
	[ "$(grep -c '^tiermalloc: ' err)" = "$lines" ] && [ "$(wc -l <err)" = "$lines" ] || { echo "$3:"; cat err; fail=1; }
	used=$(du -sk place | cut -f1)
	[ "$used" -le "$kib" ] || { echo "$3: $used KiB"; fail=1; }
	umount place
}
look 1 0 ro
look 1 0 nr_inodes=2
look 1 200 size=200k
look 0 2000 size=200m,huge=never
look 0 2000 size=200m,huge=always
look 0 2000 size=200m,huge=within_size
exit $fail
