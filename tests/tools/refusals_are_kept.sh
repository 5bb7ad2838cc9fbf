#!/bin/sh
# SPDX-License-Identifier: MIT
# What a tier's ceiling refused stands in the account of a program that died of it at once, in the table of
# tiers and in the verdict. One line tells of the first, with the variable, its value and what was asked for;
# LOG=quiet does not.
set -u
fail=0
for log in warn info tiers quiet; do
	TIERMALLOC_PERSISTENT_MAX=1M TIERMALLOC_LOG=$log "$TM_BUILD/tiermalloc" run --dir "$PWD/$log" --report full -- \
		"$TM_TESTS/refused_subject" >"$log.out" 2>"$log.err"
	[ $? = 137 ] || { echo "$log: another end"; fail=1; }
	cat "$log.out" "$log.err" >"$log.all"
	grep -qE '^persistent .* 3$' "$log.all" || { echo "$log: the table lacks 3 refusals"; fail=1; }
	grep -q "VERDICT.*; 3 requests refused at a tier's ceiling" "$log.all" || { echo "$log: no such verdict"; fail=1; }
	told=$(grep -c "^tiermalloc: TIERMALLOC_PERSISTENT_MAX=1M: a request of 8388608 bytes was refused (ENOMEM), the tier holds" "$log.all")
	[ "$told" = "$([ $log = quiet ] && echo 0 || echo 1)" ] || { echo "$log: told $told times"; fail=1; }
done
[ $fail = 0 ] || cat ./*.all
exit $fail
