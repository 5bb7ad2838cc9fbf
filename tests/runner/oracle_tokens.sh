#!/bin/sh
# SPDX-License-Identifier: MIT
# timeout: 3600
# Token ids equal to llama.cpp's, with and without special tokens, and the same tokens that end a
# generation: the small real model and made ones of both kinds of vocabulary.
. "$TM_SRC/tests/runner/oracle/fetch.sh"
oracle_fetch
oracle_model
RUN=$TM_BUILD/yi-coder-run
R=$TM_SRC/tools/runner
passed=0 failed=0
$ORACLE_CC "$TM_SRC/tests/runner/oracle/tokens.c" -o theirs $ORACLE_LINK || exit 1
${CC:-cc} -std=gnu11 -D_GNU_SOURCE -O1 -I"$TM_SRC" "$TM_SRC/tests/runner/oracle/ours_tokens.c" \
	"$R"/tokenizer.c "$R"/merge.c "$R"/pretok.c "$R"/vocab.c "$R"/vocab_special.c "$R"/unicode.c \
	"$R"/gguf*.c "$R"/quant*.c "$R"/mem.c "$R"/error.c -lm -o ours || exit 1
[ "$(python3 "$TM_SRC/tests/runner/oracle/corpus.py" "$R" texts)" -ge 200 ] || exit 1

# name, model
compare() {
	if ./theirs "$2" texts >theirs.txt && ./ours "$2" texts >ours.txt && cmp theirs.txt ours.txt; then
		passed=$((passed + 1))
	else
		echo "$1: ids differ"
		failed=$((failed + 1))
	fi
}

small="--layers 1 --embd 64 --heads 2 --kv-heads 2 --ff 64 --type F32"
compare "the small real model" "$ORACLE_MODEL"
for shape in tiny smollm2-135m yi-coder-1.5b; do
	"$RUN" make-model --shape $shape $small -o made.gguf || exit 1
	compare "$shape" made.gguf
done

# The command line: special tokens are text unless --chat is given.
text='a <|im_start|>user
Wie geht’s?<|im_end|> 12 + 34'
printf '%s' "$text" >text
./theirs "$ORACLE_MODEL" text >theirs.txt
plain=$("$RUN" -m "$ORACLE_MODEL" --tokenize "$text")
chat=$("$RUN" -m "$ORACLE_MODEL" --chat --tokenize "$text")
if [ "$plain " = "$(sed -n 2p theirs.txt)" ] && [ "$chat " = "$(sed -n 4p theirs.txt)" ] && [ "$plain" != "$chat" ]; then
	passed=$((passed + 1))
else
	echo "--tokenize: ids differ"
	failed=$((failed + 1))
fi
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
