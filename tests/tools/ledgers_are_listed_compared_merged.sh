#!/bin/bash
# SPDX-License-Identifier: MIT
# 'ls', 'gc', 'diff', 'merge', 'ack', 'symbols', 'top': on ledgers of two runs of one program.
set -u
tool=$TM_BUILD/tiermalloc
fail=0
bad() { echo "$1"; cat out err; fail=1; }
export HOME=$PWD
unset XDG_CONFIG_HOME
for n in 20 200; do
	TIERMALLOC_DIR=$PWD/l LD_PRELOAD=$TM_LIB "$TM_TESTS/leaks_subject" plain $n || bad "subject $n"
done
ledgers=(l/*.tm)
[ ${#ledgers[@]} = 2 ] || bad "two ledgers"
a=${ledgers[0]} b=${ledgers[1]}
[ "$("$tool" report --json "$a" | grep -c '"live_objs":200,')" = 0 ] || { a=${ledgers[1]} b=${ledgers[0]}; }
"$tool" ls l >out 2>err && [ "$(grep -c 'leaks_subject *clean' out)" = 2 ] || bad ls
"$tool" diff "$a" "$b" >out 2>err && grep -q '^VERDICT  live +' out &&
	grep -Eq '^ *[+]18000 +[+]180 +[+]180 .* keep_plain  leaks_subject.cpp:' out || bad diff
"$tool" report --json "$a" >a.json && "$tool" diff --json a.json "$b" >d.json 2>err &&
	python3 -c 'import json; d = json.load(open("d.json")); assert d["kind"] == "diff" and d["sites"][0]["base_live_objs"] == 20 and d["sites"][0]["live_objs"] == 200' || bad "diff of a report"
"$tool" diff --html d.html "$a" "$b" 2>err && grep -q 'Content-Security-Policy' d.html && [ ! -s err ] || bad "diff as a page"
"$tool" diff "$a" "$b" --html 2>err; [ $? = 2 ] && [ "$(cat err)" = "tiermalloc: diff: the option '--html' needs a value" ] || bad "a page without a name"
"$tool" merge "$a" "$b" -o m.json 2>err && "$tool" report --from-json m.json >out 2>err &&
	grep -Eq '^ *22000 +220 +220 +0 .* keep_plain ' out || bad merge
"$tool" leaks "$b" >out 2>err
[ $? = 3 ] || bad "leaks: status"
site=$(sed -n 's/^   site  \(s:[0-9a-f]*\)  keep_plain .*/\1/p' out)
[ -n "$site" ] || bad "no site"
"$tool" ack "$site" --cap 1M 2>err && "$tool" ack | grep -q "^$site --cap 1048576$" || bad ack
"$tool" leaks "$b" >out 2>err
grep -q "watch.*$site.*acknowledged up to 1048576 bytes" out || bad "acknowledged"
"$tool" ack "$site" --cap 1K && "$tool" leaks "$b" >out 2>err
[ $? = 3 ] && grep -q "site  $site" out || bad "over the cap"
"$tool" ack "$site" --cap 0 && [ -z "$("$tool" ack)" ] || bad "taken back"
echo 'leak:keep_plain' >supp
"$tool" leaks --suppressions missing "$b" >out 2>err; [ $? = 2 ] && [ ! -s out ] && grep -q "^tiermalloc: 'missing' of --suppressions cannot be read: " err || bad "suppressions that are not there"
"$tool" leaks --suppressions supp "$b" >out 2>err
grep -q keep_plain out && bad "suppressed"
"$tool" leaks --json --site s: "$b" >out 2>err
[ $? = 2 ] && grep -q 'is the beginning of' err || bad "an ambiguous site"
"$tool" leaks --site "$site" "$b" >out 2>err && bad "status of a site that leaks"
grep -q '   0  keep_plain  leaks_subject.cpp:' out || bad "one site"
"$tool" symbols "$b" >out 2>err && grep -q '^debug .*leaks_subject' out || bad symbols
"$tool" top "$b" >out 2>err && grep -q ' keep_plain ' out || bad top
"$tool" report --filter '*keep_plain*' --sort objects --top 1 "$b" >out 2>err
[ "$(grep -Ec '^ +[0-9]+ +[0-9]+ .* s:[0-9a-f]+ ' out)" = 1 ] || bad filter
"$tool" gc --dry-run --age 0 l >out 2>err && [ -e "$a" ] && grep -q '^would remove [012] ' out || bad "gc --dry-run"
# One of another release, an empty one; what has no such name or is of a process that runs stays.
{ head -c 8 "$a"; printf '\001\000\000\000'; } | tee l/99999999-1.tm l/notes.tm >"l/$$-$(sed 's/.*) //' /proc/$$/stat | cut -d' ' -f20).tm"
: >l/99999998-1.tm
touch -d '2 days ago' l/*.tm
"$tool" gc l >out 2>err && [ ! -e "$a" ] && [ ! -e "$b" ] && grep -q '^removed 4 ' out || bad gc
[ "$(ls l | wc -l)" = 2 ] && [ -e l/notes.tm ] || { ls l; bad "gc of files that are no ledgers"; }
for words in "ack s:xyz --cap 1K" "ack s:12" "diff $a" "merge $a" "gc --age x" "top -d x" "ls --all" "symbols"; do
	"$tool" $words >out 2>err
	[ $? = 2 ] && [ "$(wc -l <err)" = 1 ] && [ ! -s out ] || bad "$words"
done
exit $fail
