#!/bin/sh
# SPDX-License-Identifier: MIT
# A wrong option, and a 'yes' that cannot be met, stop configure with a message that names them.
. "$TM_SRC/tests/builds/common.sh"

# refuses WORDS ARGS...: configure with ARGS fails and says WORDS
refuses() {
	words=$1
	shift
	if "$TM_SRC/configure" -q "$@" >log 2>&1; then
		echo "configure $* did not fail"
		exit 1
	fi
	grep -q -- "$words" log || {
		echo "configure $* does not say '$words':"
		cat log
		exit 1
	}
}
refuses "one of auto, yes, no" --with-numa=maybe
refuses "one of yes, no" --enable-werror=perhaps
refuses "enable-sanitizers='memory'" --enable-sanitizers=memory
refuses "not a directory" --with-cuda=/nowhere
refuses "Criterion is not installed" --with-criterion=yes CRITERION_CFLAGS= PKG_CONFIG=false
refuses "libunwind is not installed" --with-libunwind=yes PKG_CONFIG=false
refuses "libdw is not installed" --with-libdw=yes PKG_CONFIG=false
