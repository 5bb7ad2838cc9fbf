#!/bin/sh
# SPDX-License-Identifier: MIT
# timeout: 3600
# The CUDA hooks under -fsanitize=address,undefined, on the fake driver. The hooks' own records count, too:
# what was given back is forbidden (cuda_hooks/memory.h).
kind="-fsanitize=address,undefined -fno-sanitize-recover=undefined"
# Times, long replays, the program's own heap, and a namespace that has no run-time library of its own.
without="traces_meet_their_figures observing_costs_little other_lookups_allocate_nothing reuse_waits_for_old_work
	fake_runtime_behaves visible_pointers_hold_blocks other_namespaces_are_named"
export ASAN_OPTIONS=detect_leaks=0
. "$TM_SRC/tests/builds/cuda_sanitized.sh"
