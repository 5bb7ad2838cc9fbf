#!/bin/sh
# SPDX-License-Identifier: MIT
# needs: clang
# timeout: 900
# Clean under clang's warnings, and the unit tests pass in its code.
. "$TM_SRC/tests/builds/common.sh"
configure_here CC=clang CXX=clang++ --enable-werror
make -s -j"$jobs" all tests/unit/unit tests/preload/loads
run_suites unit preload/loads
