#!/bin/sh
# SPDX-License-Identifier: MIT
# needs: gcc
# timeout: 900
# Clean under gcc's warnings with every optional part left out; auto must degrade and still build.
. "$TM_SRC/tests/builds/common.sh"
configure_here CC=gcc --enable-werror --with-cuda=no --with-numa=no --with-libunwind=no --with-libdw=no --with-criterion=no
make -s -j"$jobs" all tests/unit/unit tests/preload/loads
run_suites unit preload/loads
