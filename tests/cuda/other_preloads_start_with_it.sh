#!/bin/sh
# SPDX-License-Identifier: MIT
# A program that uses CUDA starts under another allocator before or behind the library: dlsym is asked
# for while malloc starts, and the other way round (jemalloc#443, #2505, tebako#527).
set -eu
found=
for name in libjemalloc.so.2 libtcmalloc_minimal.so.4 libmimalloc.so.2; do
	for dir in /usr/lib /usr/lib/x86_64-linux-gnu /usr/lib/aarch64-linux-gnu /usr/lib64 /usr/local/lib; do
		[ -e "$dir/$name" ] || continue
		found="$found $name"
		for list in "$TM_LIB:$dir/$name" "$dir/$name:$TM_LIB"; do
			LD_PRELOAD=$list "$TM_TESTS/several_runtimes_are_seen" >out 2>&1 || {
				status=$?
				# Behind another allocator the library serves no memory and counts none.
				[ $status -lt 124 ] || { echo "$list: $status"; cat out; exit 1; }
			}
		done
		break
	done
done
[ -n "$found" ] || { echo "no other allocator is installed"; exit 77; }
echo "started with$found"
