#!/bin/sh
# SPDX-License-Identifier: MIT
# The same tokens as llama.cpp's chain of samplers draws, from equal logits and seeds.
. "$TM_SRC/tests/runner/oracle/fetch.sh"
oracle_fetch
passed=0 failed=0
source=$TM_SRC/tests/runner/oracle/draws.c
$ORACLE_CC -DORACLE "$source" -o theirs $ORACLE_LINK || exit 1
${CC:-cc} -std=gnu11 -D_GNU_SOURCE -O2 -I"$TM_SRC" "$source" "$TM_SRC/tools/runner/sampler.c" \
	"$TM_SRC/tools/runner/mem.c" -lm -o ours || exit 1
for shape in "64000 60" "700 300" "1500 100"; do
	python3 - $shape <<'PY' || exit 1
import array, random, sys
n_vocab, rows = map(int, sys.argv[1:])
r = random.Random(n_vocab)
with open("logits", "wb") as f:
    for _ in range(rows):
        mean, sigma = r.choice([0, 0, -5, 5]), r.choice([.5, 1, 2, 4])
        array.array("f", [r.gauss(mean, sigma) for _ in range(n_vocab)]).tofile(f)
PY
	if ./theirs logits ${shape% *} >theirs.txt && ./ours logits ${shape% *} >ours.txt &&
		[ "$(wc -w <ours.txt)" -eq $((11 * ${shape#* })) ] && cmp theirs.txt ours.txt; then
		passed=$((passed + 1))
	else
		echo "$shape: draws differ"
		failed=$((failed + 1))
	fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
