#!/bin/sh
# SPDX-License-Identifier: MIT
# timeout: 3600
# With tm_assert() and the lock order check on.
. "$TM_SRC/tests/builds/common.sh"
configure_here --enable-werror --enable-debug
make -s -j"$jobs" tests
run_suites unit preload death
