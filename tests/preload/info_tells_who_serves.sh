#!/bin/sh
# SPDX-License-Identifier: MIT
# TIERMALLOC_LOG=info: one line says which version serves the process and where its ledger is, or why it has
# none; passive, why it does not serve. Nothing of it without info.
set -u
fail=0
dir=$PWD/ledgers
said() { # WANTED VARIABLES...: exactly one line, of this form
	wanted=$1
	shift
	env LD_PRELOAD="$TM_LIB" "$@" "$(command -v true)" >out 2>&1
	if [ "$(wc -l <out)" != 1 ] || ! grep -qE "^tiermalloc: version [^ ]+ $wanted\$" out; then
		echo "$*: not '$wanted' but:"
		cat out
		fail=1
	fi
}

[ -r "$TM_LIB" ] || { echo "no library"; exit 77; }
said "serves process [0-9]+ \([^)]*true[^)]*\), ledger '$dir/[0-9]+-[0-9]+\.tm'" TIERMALLOC_LOG=info TIERMALLOC_DIR="$dir"
said "serves process .*, no ledger: until it holds more than 4 MiB" TIERMALLOC_LOG=info
said "serves process .*, no ledger: TIERMALLOC_LEDGER=off" TIERMALLOC_LOG=info TIERMALLOC_LEDGER=off
said "serves process .*, no ledger: TIERMALLOC_TARGET names another program" TIERMALLOC_LOG=info \
	TIERMALLOC_DIR="$dir" TIERMALLOC_TARGET=nothing
said "leaves to the next allocator process .*: TIERMALLOC=off" TIERMALLOC_LOG=info TIERMALLOC=off
for log in warn quiet tiers; do
	env LD_PRELOAD="$TM_LIB" TIERMALLOC_LOG=$log TIERMALLOC_DIR="$dir" true >out 2>&1
	[ -s out ] && { echo "$log:"; cat out; fail=1; }
done
exit $fail
