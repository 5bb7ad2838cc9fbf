#!/bin/sh
# SPDX-License-Identifier: MIT
# Caches of keys and values, with the compiler's checks of addresses and of undefined behaviour
# where it has them.
R=$TM_SRC/tools/runner
echo 'int main(void) { return 0; }' >probe.c
checks="-fsanitize=address,undefined -fno-sanitize-recover=all"
${CC:-cc} $checks probe.c -o probe 2>/dev/null && ./probe || checks=
${CC:-cc} -std=gnu11 -D_GNU_SOURCE -O1 -g $checks -I"$TM_SRC" "$TM_SRC/tests/runner/kv/check.c" \
	"$R"/kv*.c "$R"/quant*.c "$R"/mem.c "$R"/error.c "$R"/unicode.c -lm -lpthread -o check || exit 1
./check
