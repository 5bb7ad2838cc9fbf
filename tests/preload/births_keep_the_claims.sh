#!/bin/bash
# SPDX-License-Identifier: MIT
# The claims about semantics hold where each birth and death is kept (TIERMALLOC_LEDGER=deep), and where a
# trace is recorded beside it: these have functions of their own behind every name, and take locks outside
# the heap. Failure: a forgotten name, a signal handler that waits for what it interrupted.
set -u
[ -r "$TM_LIB" ] || { echo "no library"; exit 77; }
fail=0
try() { # PROGRAM...: in this environment
	local p said status
	for p; do
		said=$(LD_PRELOAD="$TM_LIB" "$TM_TESTS/$p" 2>&1)
		status=$?
		[ $status = 0 ] || { echo "$p: status $status"; head -5 <<<"$said"; fail=1; }
	done
}
export TIERMALLOC_LEDGER=deep TIERMALLOC_DIR="$TMPDIR/deep"
try whole_family_follows_libc realloc_keeps_content new_fails_as_cxx_demands free_keeps_errno \
	malloc_works_in_signal_handlers unannounced_child_allocates vfork_child_uses_parents_heap wrong_frees_are_survived
TIERMALLOC_TRACE="$TMPDIR/%p.trace" try whole_family_follows_libc realloc_keeps_content
exit $fail
