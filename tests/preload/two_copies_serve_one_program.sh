#!/bin/bash
# SPDX-License-Identifier: MIT
# H09 H85: the library is preloaded twice, under two names: the first serves, the second keeps still, in
# either order, also in children and where both are asked for a ledger. Failure: a crash, another result.
set -u
[ -r "$TM_LIB" ] || { echo "no library"; exit 77; }
cp "$TM_LIB" second.so || exit 1
fail=0
try() { # PRELOADS WORD...
	local said status preloads=$1
	shift
	said=$(LD_PRELOAD=$preloads "$@" 2>&1)
	status=$?
	[ $status = 0 ] || { echo "$preloads: $*: status $status"; head -5 <<<"$said"; fail=1; }
}
for preloads in "$TM_LIB:$PWD/second.so" "$PWD/second.so:$TM_LIB"; do
	for program in whole_family_follows_libc realloc_keeps_content cxx_operators_mix_freely \
		blocks_of_libc_go_back_by_free every_size_is_16_aligned; do
		try "$preloads" "$TM_TESTS/$program"
	done
	try "$preloads" bash -c 'for i in 1 2 3; do x=$(echo $i | sort); [ "$x" = $i ] || exit 1; done'
	mkdir -p -m 700 ledgers
	TIERMALLOC_DIR=$PWD/ledgers try "$preloads" "$TM_TESTS/realloc_keeps_content"
done
exit $fail
