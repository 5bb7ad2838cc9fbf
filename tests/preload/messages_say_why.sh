#!/bin/sh
# SPDX-License-Identifier: MIT
# A folder or file that cannot be used is told in words, in one line, and the program runs on; no message of
# the library's source has a bare error number.
set -u
fail=0
says() { # WORDS VARIABLE
	env LD_PRELOAD="$TM_LIB" "$2" sh -c 'echo ran' >out 2>err
	if [ "$(cat out)" != ran ] || [ "$(wc -l <err)" != 1 ] || ! grep -qF "$1" err; then
		echo "$2: not '$1' but:"
		cat out err
		fail=1
	fi
}

[ -r "$TM_LIB" ] || { echo "no library"; exit 77; }
mkdir -p open && chmod 755 open && : >file
says "(others may enter the folder, run chmod 700 on it, error 1)" "TIERMALLOC_DIR=$PWD/open"
says "(no such folder, nor the one above it, error 2)" "TIERMALLOC_DIR=$PWD/none/a/b"
says "(a part of the path is no folder, error 20)" "TIERMALLOC_DIR=$PWD/file"
says "cannot be written (no such file or folder), nothing is recorded" "TIERMALLOC_TRACE=$PWD/none/trace"
says "(no such file or folder, error 2)" "TIERMALLOC_PROFILE=$PWD/none/profile"
# of a program that ends by exit, as sh may not
env LD_PRELOAD="$TM_LIB" TIERMALLOC_CONF=report=exit:report_file=/dev/full bash -c : 2>err
if [ "$(cat err)" != "tiermalloc: cannot write the report '/dev/full' (the disk is full, error 28)" ]; then
	echo "a report that had no room:"
	cat err
	fail=1
fi
if grep -rnE '[^,] ?\(error %' "$TM_SRC/shim" "$TM_SRC/cuda_hooks"; then
	echo "these have a number without words"
	fail=1
fi
exit $fail
