#!/bin/bash
# SPDX-License-Identifier: MIT
# TIERMALLOC_REPORT=leak, frag and full: the process's own account, then the command's report of its
# ledger, on standard error or in the file; standard output and the exit status stay the program's.
set -u
fail=0
for kind in leak frag full; do
	LD_PRELOAD=$TM_LIB TIERMALLOC_REPORT=$kind TIERMALLOC_DIR=$PWD/l "$TM_TESTS/late_subject" small large exit >out 2>err
	[ $? = 0 ] || { echo "$kind: status"; fail=1; }
	[ -s out ] && { echo "$kind: writes to standard output"; fail=1; }
	grep -q '^tiermalloc .* report of process' err || { echo "$kind: no account"; fail=1; }
	grep -q '^VERDICT' err || { echo "$kind: no report"; cat err; fail=1; }
	LD_PRELOAD=$TM_LIB TIERMALLOC_REPORT=$kind TIERMALLOC_DIR=$PWD/l TIERMALLOC_REPORT_FILE=file-$kind "$TM_TESTS/late_subject" large exit >out 2>err
	[ -s err ] && { echo "$kind: says something"; cat err; fail=1; }
	grep -q '^VERDICT' "file-$kind" || { echo "$kind: no report in the file"; fail=1; }
done
# Without the command beside it: what to type.
cp "$TM_LIB" ./libtiermalloc.so
LD_PRELOAD=$PWD/libtiermalloc.so TIERMALLOC_REPORT=leak TIERMALLOC_DIR=$PWD/l "$TM_TESTS/late_subject" large exit 2>err
grep -q "the ledger is '.*/l/.*\.tm': tiermalloc leaks " err || { echo "no hint"; cat err; fail=1; }
exit $fail
