# SPDX-License-Identifier: MIT
# Sourced: fuzz_build NAME SOURCE... builds runner/NAME.c with the runner's tokenizer and the
# compiler's checks where it has them; FUZZ_S is for how long to run.
FUZZ_S=10
[ -z "$TM_LONG" ] || FUZZ_S=900

fuzz_build() {
	name=$1 checks="-fsanitize=address,undefined -fno-sanitize-recover=all"
	shift
	echo 'int main(void) { return 0; }' >probe.c
	${CC:-cc} $checks probe.c -o probe 2>/dev/null && ./probe || checks=
	${CC:-cc} -std=gnu11 -D_GNU_SOURCE -O1 -g $checks -I"$TM_SRC" "$TM_SRC/tests/fuzz/runner/$name.c" \
		"$R"/tokenizer.c "$R"/merge.c "$R"/pretok.c "$R"/vocab.c "$R"/vocab_special.c "$R"/detok.c \
		"$R"/unicode.c "$R"/gguf*.c "$R"/quant*.c "$R"/mem.c "$R"/error.c "$@" -lm -o "$name" || exit 1
}
