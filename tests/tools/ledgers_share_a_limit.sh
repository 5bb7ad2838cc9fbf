#!/bin/bash
# SPDX-License-Identifier: MIT
# All ledgers that nobody asked for share a quarter of their file system: here 3 MiB. Those of dead
# processes go, oldest first; the newest is there.
set -u
if [ "${1-}" != inside ]; then
	unshare -rm true 2>/dev/null || { echo "no namespace of its own here"; exit 77; }
	exec unshare -rm "$0" inside
fi
mount -t tmpfs -o size=12M none /dev/shm 2>/dev/null || { echo "no mount of a tmpfs here"; exit 77; }
grep -q '^Seccomp:.*0' /proc/self/status || [ -e /.dockerenv ] || { echo "a system call filter is in force"; exit 77; }
place=/dev/shm/tiermalloc-$(id -u)
fail=0
first=
for n in 1 2 3 4 5 6 7 8 9 10 11 12; do
	LD_PRELOAD=$TM_LIB "$TM_TESTS/late_subject" small large kill >/dev/null 2>&1 &
	pid=$!
	wait $pid 2>/dev/null
	ls "$place/$pid"-*.tm >/dev/null 2>&1 || { echo "$n: the newest has none"; fail=1; }
	[ -n "$first" ] || first=$pid
	[ "$(du -sk /dev/shm | cut -f1)" -le 3072 ] || { echo "$n: more than the share"; fail=1; }
	touch -d "$((100 - n)) minutes ago" "$place/$pid"-*.tm
done
ls "$place/$first"-*.tm >/dev/null 2>&1 && { echo "the oldest is still there"; ls -l "$place"; fail=1; }
exit $fail
