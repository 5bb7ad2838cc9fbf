#!/bin/sh
# SPDX-License-Identifier: MIT
# needs: gcc
# timeout: 3600
# Clean under gcc's warnings with every optional part left out; auto must degrade and still build.
. "$TM_SRC/tests/builds/common.sh"
configure_here CC=gcc --enable-werror --with-cuda=no --with-numa=no --with-libunwind=no --with-libdw=no --with-criterion=no
# Two calls: "all" is a make of its own, which would build the archives beside this one.
make -s -j"$jobs" all
make -s -j"$jobs" tests/unit/unit tests/preload/loads
run_suites unit preload/loads
