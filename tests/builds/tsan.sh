#!/bin/sh
# SPDX-License-Identifier: MIT
# timeout: 900
# The unit tests under -fsanitize=thread.
. "$TM_SRC/tests/builds/common.sh"
configure_here --enable-werror --enable-sanitizers=thread
make -s -j"$jobs" tests
run_suites unit
