#!/bin/sh
# SPDX-License-Identifier: MIT
# timeout: 900
# The unit tests under -fsanitize=address,undefined.
. "$TM_SRC/tests/builds/common.sh"
configure_here --enable-werror --enable-sanitizers=address,undefined --with-criterion=auto
make -s -j"$jobs" tests
[ -x tests/unit/unit ] || {
	echo "Criterion is not installed"
	exit 77
}
run_suites unit
