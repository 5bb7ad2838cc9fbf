#!/bin/sh
# SPDX-License-Identifier: MIT
# needs: clang
# timeout: 3600
# Clean under clang's warnings, and the unit tests pass in its code.
. "$TM_SRC/tests/builds/common.sh"
configure_here CC=clang CXX=clang++ --enable-werror
# Two calls: "all" is a make of its own, which would build the archives beside this one.
make -s -j"$jobs" all
make -s -j"$jobs" tests/unit/unit tests/preload/loads
run_suites unit preload/loads
