#!/bin/sh
# SPDX-License-Identifier: MIT
# needs: clang
# timeout: 3600
# The target of gguf.c under libFuzzer with address and undefined-behaviour checks: seconds, in soak
# 15 minutes.
set -e
runner=$TM_SRC/tools/runner
checks="-fsanitize=address,undefined -fno-sanitize-recover=all"
echo 'int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n) { return d && n ? 0 : 0; }' >probe.c
clang -fsanitize=fuzzer probe.c -o probe 2>/dev/null || {
	echo "this clang has no libFuzzer"
	exit 77
}
objects=
for source in "$runner"/*.c; do
	flags=-fsanitize=fuzzer-no-link
	case $source in
	*/main.c) continue ;;
	*/dot_v3*.c)
		[ "$(uname -m)" = x86_64 ] || continue
		flags="$flags -mavx2 -mfma -mf16c"
		;;
	esac
	object=$(basename "$source" .c).o
	clang -std=gnu11 -D_GNU_SOURCE -O1 -g -ffp-contract=off $checks $flags -I"$TM_SRC" -I"$TM_BUILD" -c "$source" -o "$object"
	objects="$objects $object"
done
clang -std=gnu11 -D_GNU_SOURCE -O1 -g -DYI_LIBFUZZER -fsanitize=fuzzer $checks -I"$TM_SRC" -I"$TM_BUILD" \
	"$TM_SRC/tests/fuzz/gguf.c" $objects -lm -lpthread -o fuzz
mkdir -p corpus
for type in Q8_0 F32 Q4_1 BF16; do
	"$TM_BUILD/yi-coder-run" make-model --shape tiny --layers 1 --embd 32 --heads 2 --kv-heads 1 --ff 64 --vocab 512 \
		--type $type -o corpus/$type
done
"$TM_BUILD/yi-coder-run" make-model --shape smollm2-135m --layers 1 --embd 32 --heads 2 --kv-heads 1 --ff 64 --vocab 512 \
	--rope-freqs -o corpus/byte-level
seconds=15
[ -z "$TM_LONG" ] || seconds=900
./fuzz -max_total_time=$seconds -max_len=262144 -rss_limit_mb=1024 -timeout=20 corpus >log 2>&1 || {
	tail -n 40 log
	exit 1
}
tail -n 2 log
