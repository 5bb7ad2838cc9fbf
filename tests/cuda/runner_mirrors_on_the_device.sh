#!/bin/sh
# SPDX-License-Identifier: MIT
# yi-coder-run --device cuda: the same answer, device and pinned memory accounted, a clear refusal
# where there is no runtime.
set -eu
fail() { echo "$*"; exit 1; }
run=$TM_BUILD/yi-coder-run
"$run" make-model --shape tiny --seed 1 -o tiny.gguf
"$run" -m tiny.gguf -p hello -n 8 --greedy --quiet >cpu.txt
for pool in observe pool; do
	env LD_LIBRARY_PATH="$TM_TESTS" LD_PRELOAD="$TM_LIB" TIERMALLOC_CUDA=$pool TIERMALLOC_REPORT=exit \
		TIERMALLOC_REPORT_FILE=report.txt \
		"$run" -m tiny.gguf -p hello -n 8 --greedy --quiet --device cuda >cuda.txt
	cmp cpu.txt cuda.txt || fail "$pool: another answer"
	grep -q 'TM_HAVE_CUDA 1' "$TM_BUILD/config.h" || continue # nobody accounts for it
	grep -q 'GPU 0 device  *0 ' report.txt || fail "$pool: device memory is not accounted, or was left"
	grep -q 'GPU 0 pinned host  *0 ' report.txt || fail "$pool: pinned memory is not accounted, or was left"
done
status=0
env LD_LIBRARY_PATH=/nowhere "$run" -m tiny.gguf -p hello -n 1 --quiet --device cuda 2>refused.txt || status=$?
if [ $status = 0 ]; then
	echo "this machine has a CUDA runtime of its own: no refusal to look at"
else
	[ $status = 1 ] && [ "$(wc -l <refused.txt)" = 1 ] || fail "refused with $status: $(cat refused.txt)"
fi
