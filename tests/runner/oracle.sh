#!/bin/sh
# SPDX-License-Identifier: MIT
# timeout: 3600
# Logits equal, bit for bit, to those of llama.cpp's plain x86-64 back end: every type on several
# shapes, whatever the number of threads, the way of loading and of holding keys and values.
. "$TM_SRC/tests/runner/oracle/fetch.sh"
oracle_fetch
RUN=$TM_BUILD/yi-coder-run
passed=0 failed=0
$ORACLE_CC "$TM_SRC/tests/runner/oracle/logits.c" -o logits $ORACLE_LINK || exit 1

# name, model, tokens, generated, options of ours
compare() {
	name=$1 model=$2 tokens=$3 n=$4
	shift 4
	if ./logits "$ORACLE_LIBS/libggml-cpu-x64.so" "$model" oracle.bin "$tokens" "$n" 16 1 >oracle.txt &&
		"$RUN" -m "$model" --tokens "$tokens" -n "$n" --greedy --exact --quiet --logits ours.bin "$@" >/dev/null &&
		cmp oracle.bin ours.bin; then
		passed=$((passed + 1))
	else
		echo "$name: logits differ"
		failed=$((failed + 1))
	fi
}

# name, options of make-model
all_types() {
	name=$1
	shift
	for type in F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K Q4_K_M; do
		"$RUN" make-model --shape tiny --type $type "$@" -o model.gguf || exit 1
		compare "$name $type" model.gguf "$tokens" 5
	done
}

tokens=$(oracle_tokens 20 500)
all_types "grouped heads" --seed 3
all_types "own keys for each head, tied, frequencies" --layers 3 --embd 512 --heads 4 --kv-heads 4 \
	--ff 768 --vocab 600 --tied --rope-freqs --seed 7
all_types "rows that aren't whole blocks of 256" --layers 2 --embd 576 --heads 9 --kv-heads 3 --ff 1504 --vocab 515 --seed 9

"$RUN" make-model --shape tiny --type Q5_1 -o model.gguf || exit 1
tokens=$(oracle_tokens 150 1000)
for options in "-t 2" "-t 3 --load read" "--populate all --kv-alloc full" "--kv-alloc ring -c 200"; do
	compare "$options" model.gguf "$tokens" 20 $options
done
ORACLE_KV_F32=1 compare "--kv f32" model.gguf "$tokens" 20 --kv f32

if [ -n "$TM_LONG" ]; then
	for type in Q8_0 Q4_0 Q4_K_M; do
		"$RUN" make-model --shape yi-coder-1.5b --type $type -o model.gguf || exit 1
		compare "yi-coder-1.5b $type" model.gguf 1,500,9000,40000,63999 3
	done
fi
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
