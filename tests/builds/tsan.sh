#!/bin/sh
# SPDX-License-Identifier: MIT
# timeout: 3600
# The unit tests under -fsanitize=thread.
. "$TM_SRC/tests/builds/common.sh"
# gcc warns of fences, which ThreadSanitizer does not follow: what they order (seqlocks that a reader
# of the file looks at) is read by no thread here.
configure_here --enable-werror --enable-sanitizers=thread CFLAGS="-O2 -g -Wno-tsan"
make -s -j"$jobs" tests
# A child that ends by _exit while threads of its parent are not joined has not leaked them.
export TSAN_OPTIONS=report_thread_leaks=0:die_after_fork=0
run_suites unit
