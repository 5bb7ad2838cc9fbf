#!/bin/sh
# SPDX-License-Identifier: MIT
# needs: valgrind
# Instructions of a pair, with its loop: blocks up to 1 KiB, and of 64 KiB, pay nothing for their tier, others
# up to 60 KiB at most ten for it. Exact counts, but for the looks at a clock,
# and a tenth more for another compiler. x86-64, optimized.
# Failure: a pair takes more than the bound beside it.
[ "$(uname -m)" = x86_64 ] || { echo "x86-64 only"; exit 77; }
grep -q -- '-O2' "$TM_BUILD/Makefile" || { echo "not built with -O2"; exit 77; }
grep -q 'TM_DEBUG 1' "$TM_BUILD/config.h" && { echo "a debug build"; exit 77; }
count() {
	LD_PRELOAD="$TM_LIB" valgrind --tool=callgrind --callgrind-out-file=/dev/null \
		--soname-synonyms=somalloc=nouserintercepts "$TM_TESTS/pair_subject" "$1" "$2" 2>&1 |
		sed -n 's/.*Collected : //p'
}
failed=0
while read -r bytes bound; do
	few=$(count 20000 "$bytes") many=$(count 60000 "$bytes")
	each=$(((many - few) / 40000))
	[ "$each" -le "$bound" ] && continue
	echo "a pair of $bytes bytes takes $each instructions, at most $bound"
	failed=1
done <<END
32 84
1024 84
1536 120
65536 80
END
exit $failed
