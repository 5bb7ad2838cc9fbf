#!/bin/sh
# SPDX-License-Identifier: MIT
# needs: python3
# explain says who decided where a site's blocks lie; tune writes what was learned as rules that apply.
fail=0
tool=$TM_BUILD/tiermalloc
dir=$(mktemp -d /dev/shm/tm-explain.XXXXXX) || { echo "/dev/shm cannot be written"; exit 77; }
trap 'rm -rf "$dir"' EXIT
no() { echo "$1"; fail=1; }

cat >work.py <<'END'
big = [bytearray(8 << 20) for i in range(4)]
for i in range(200):
    scratch = bytearray(700000)
END
run() { TIERMALLOC_DIR=$dir TIERMALLOC_TARGET='python*' TIERMALLOC_RULES=$1 LD_PRELOAD=$TM_LIB python3 work.py; }

run 'module=no-such-file -> tier=session; size=8M..9M -> tier=persistent' 2>err
[ -s err ] && { cat err; no "rules are complained about"; }
ls "$dir"/*.tm >/dev/null 2>&1 || { echo "no ledger can be kept here"; exit 77; }
"$tool" explain "$dir" >out || no "explain fails"
grep -q '^temporary  *learned, rule 2 .* from 256 KiB on$' out || no "the scratch is not temporary"
grep -q '^line 1 of TIERMALLOC_RULES decided nothing so far$' out || no "line 1 is not told of"
grep -q '^line 2' out && no "line 2 is told of"
for by in $(awk 'NR > 3 && $1 ~ /^(persistent|session|temporary)$/ { sub(",", "", $2); print $2 }' out | sort -u); do
	grep -Eq "^(by)? +$by +[a-z]" out || no "explain does not say what '$by' is"
done
# A site's bytes stand in one row: those of its blocks from 256 KiB on, if it has one.
python3 - out <<'END' || no "a site's bytes are shown twice"
import re, sys
rows = [re.match(r"\w+  +\S.*?   *([\d.]+ [KMGT]?i?B +[\d.]+ [KMGT]?i?B)  .*\d  (.*)", line) for line in open(sys.argv[1])]
rows = [row.groups() for row in rows if row]
large = [(size, name.removesuffix(", from 256 KiB on")) for size, name in rows if name.endswith(", from 256 KiB on")]
assert large
sys.exit(any(row in large for row in rows))
END
grep -q 'observe' out && no "tiers that were used are said to be none"
grep -q '^die soon, late ' out || no "explain does not say what dies soon"
"$tool" explain --json "$dir" >json || no "explain --json fails"
python3 -c 'import json; d = json.load(open("json")); assert any(s["authority"] == "learned" for s in d["sites"])' ||
	no "no site of the report has an authority"

# Tiers that were only decided.
mkdir -m 700 observed
TIERMALLOC=observe TIERMALLOC_DIR=$PWD/observed TIERMALLOC_TARGET='python*' LD_PRELOAD=$TM_LIB python3 work.py
"$tool" explain observed >out2 || no "explain fails on what was observed"
sed -n 2p out2 | grep -q '^TIERMALLOC=observe: these tiers were decided but not used' || { cat out2; no "explain takes observed tiers for used ones"; }
grep -q '^temporary ' out2 || { cat out2; no "nothing was decided by an observer"; }

"$tool" tune "$dir"/*.tm -o learned.rules || no "tune fails"
grep -q '^\(# [a-z ]*: \)*site=.* -> tier=temporary # .* died soon' learned.rules || { cat learned.rules; no "no rule was made"; }
sed -i 's/^# [a-z ]*: site/site/' learned.rules
rm -f "$dir"/*
run learned.rules 2>err
[ -s err ] && { cat err; no "tuned rules are complained about"; }
"$tool" explain "$dir" >out2
grep -q '^temporary  *rule [0-9]* ' out2 || { cat learned.rules out2; no "tuned rules decide nothing"; }

# They are about the same sites in a trace.
"$tool" trace -o work.tmt -- python3 work.py 2>err
"$tool" replay --rules learned.rules work.tmt >out3
grep -q '^decided by .*rule [1-9]' out3 || { cat err learned.rules out3; no "tuned rules decide nothing in a trace"; }

# The same as a profile: it decides where no rule does.
rm -f "$dir"/*
TIERMALLOC_PROFILE=learned.rules run 'size=8M..9M -> tier=session; size=200K..250K -> tier=session' 2>err
[ -s err ] && { cat err; no "the profile is complained about"; }
"$tool" explain "$dir" >out3
grep -q '^temporary  *profile ' out3 || { cat learned.rules out3; no "the profile decides nothing"; }
grep -q 'line [3-9].* decided nothing' out3 && { cat out3; no "lines of a profile are told of as rules"; }
rm -f "$dir"/*
TIERMALLOC_PROFILE=learned.rules run 'size=600000..800000 -> tier=session' 2>err
"$tool" explain "$dir" >out3
grep -q '^session  *rule 1 .*from 256 KiB on' out3 || { cat out3; no "a rule has no weight beside a profile"; }
TIERMALLOC_PROFILE=/no/such/file run '' 2>err
grep -q "^tiermalloc: TIERMALLOC_PROFILE: cannot read '/no/such/file' (no such file or folder, error 2)$" err || { cat err; no "no line on a missing profile"; }

"$tool" explain learned.rules 2>/dev/null
[ $? = 2 ] || no "a file that is no ledger: status"
"$tool" tune "$dir"/*.tm 2>/dev/null
[ $? = 2 ] || no "tune without -o: status"
"$tool" replay learned.rules 2>/dev/null
[ $? = 2 ] || no "a file that is no trace: status"
"$tool" tune "$dir"/*.tm -o /no/such/dir 2>/dev/null
[ $? = 1 ] || no "tune cannot write: status"
[ $fail = 0 ] || cat out
exit $fail
