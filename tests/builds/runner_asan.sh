#!/bin/sh
# SPDX-License-Identifier: MIT
# timeout: 3600
# The runner under -fsanitize=address,undefined: kernels, bad files, sessions, mutated files.
. "$TM_SRC/tests/builds/common.sh"
configure_here --enable-werror --enable-sanitizers=address,undefined
make -s -j"$jobs" TM_TEST_CFLAGS='-fsanitize=address,undefined -fno-sanitize-recover=all' \
	yi-coder-run tests/fuzz/gguf tests/runner/kernels
run_suites runner/kernels runner/malformed runner/command runner/serve runner/state runner/utf8 fuzz/gguf
