#!/bin/sh
# SPDX-License-Identifier: MIT
# The test of reuse must be able to fail: on a pool that hands memory on at once it has to see bytes
# of the former owner, on the bare driver none.
set -eu
program=$TM_TESTS/reuse_waits_for_old_work
export TMFAKE_SEED=1 TM_ROUNDS=8000
"$program" bare
if LD_PRELOAD=$TM_TESTS/libnaive.so "$program" naive >out 2>&1; then
	echo "a naive pool passed:"
	cat out
	exit 1
fi
grep -q '^naive: .* [1-9][0-9]* bytes corrupted, 0 calls failed$' out || {
	echo "a naive pool failed for another reason:"
	cat out
	exit 1
}
cat out
