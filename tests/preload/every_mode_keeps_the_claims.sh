#!/bin/bash
# SPDX-License-Identifier: MIT
# The claims about semantics hold in every mode that swaps the functions behind the names: passing all
# on to libc, observing, with and without account, giving back at once or never, without helper, with
# huge pages always and never, with guards, of all blocks and of some. Failure: a mode in which a name
# was forgotten. (Nothing is claimed about wrong frees where libc serves, or the program is to be trusted.)
set -u
[ -r "$TM_LIB" ] || { echo "no library"; exit 77; }
fail=0
programs="whole_family_follows_libc blocks_of_libc_go_back_by_free every_size_is_16_aligned realloc_keeps_content
	small_blocks_are_cleared_and_moved_whole usable_size_is_constant cxx_operators_mix_freely new_fails_as_cxx_demands free_keeps_errno
	deepbind_plugins_share_the_heap frees_of_other_threads_are_reused many_static_objects"
ours_only="wrong_frees_are_survived free_of_a_slot_never_given handle_of_libc_gives_our_family"
try() { # MODE...: environment of the run
	local p said status more
	case $1 in TIERMALLOC=off | *=trust) more= ;; *) more=$ours_only ;; esac
	for p in $programs $more; do
		said=$(env "$@" LD_PRELOAD="$TM_LIB" "$TM_TESTS/$p" 2>&1)
		status=$?
		[ $status = 0 ] || { echo "$*: $p: status $status"; head -5 <<<"$said"; fail=1; }
	done
}
try TIERMALLOC=off
try TIERMALLOC=observe TIERMALLOC_THREAD=never
try TIERMALLOC_LEDGER=off
try TIERMALLOC_ON_ERROR=trust TIERMALLOC_LEDGER=off
try TIERMALLOC_GIVEBACK=eager TIERMALLOC_HUGE=always
try TIERMALLOC_GIVEBACK=off TIERMALLOC_HUGE=never TIERMALLOC_REPORT=exit TIERMALLOC_REPORT_FILE="$TMPDIR/%p"
try TIERMALLOC_GUARD=all TIERMALLOC_FILL=alloc=0xa5,free=0x5a
try TIERMALLOC_RULES='size<=200 -> guard=all; size=1000..70000 -> guard=sample; size>=1M -> guard=all tier=temporary'
exit $fail
