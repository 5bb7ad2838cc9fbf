#!/bin/sh
# SPDX-License-Identifier: MIT
# timeout: 3600
# The unit tests under -fsanitize=address,undefined.
. "$TM_SRC/tests/builds/common.sh"
configure_here --enable-werror --enable-sanitizers=address,undefined
make -s -j"$jobs" tests
run_suites unit
