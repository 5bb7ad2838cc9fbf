#!/bin/sh
# SPDX-License-Identifier: MIT
# The line of pools that info prints fits: every block of keys and values comes from the pool, none
# of it is left over, and the library takes the line without a word; small blocks get no such line.
RUN=$TM_BUILD/yi-coder-run
[ -e "$TM_LIB" ] || {
	echo "the library is not built"
	exit 77
}
"$RUN" make-model --shape tiny --layers 4 --embd 512 --heads 8 --kv-heads 8 --ff 1024 -o model.gguf || exit 1
line=$("$RUN" info model.gguf -c 256 --sessions 4 | grep -o 'TIERMALLOC_POOLS=[^ ]*') || exit 1
env "$line" TIERMALLOC_REPORT=exit LD_PRELOAD="$TM_LIB" "$RUN" serve-load -m model.gguf --sessions 12 --concurrency 4 \
	--kv-alloc full -c 256 --share 0 -n 8 --quiet 2>report || exit 1
# session  slot  slots  hits  misses  exhausted  high water
row=$(sed -n '/^  pool of /{n;p;}' report)
echo "$line: $row"
grep -q '^tiermalloc: ' report && cat report && exit 1
echo "$row" | awk '{ exit !($1 == "session" && $4 == 32 && $5 >= 32 && $7 == 0 && $8 == $4) }' || exit 1
"$RUN" info model.gguf -c 16 | grep -q '^pools        none: ' || exit 1
"$RUN" info model.gguf -c 16 | grep -q TIERMALLOC_POOLS && exit 1
exit 0
