#!/bin/bash
# SPDX-License-Identifier: MIT
# After kill -9, idle or in mid-run, and after sixty forks of both kinds, the ledger's live objects
# and bytes of the program's own sites equal the program's count, within one object per thread.
set -u
cli=$TM_BUILD/tiermalloc
fail=0
for mode in idle busy forks; do
	rm -rf ledgers counts
	TIERMALLOC_DIR=$PWD/ledgers LD_PRELOAD=$TM_LIB "$TM_TESTS/ledger_subject" counts $mode &
	pid=$!
	wait $pid
	[ $? = 137 ] || { echo "$mode: not killed"; exit 1; }
	file=$(ls ledgers/$pid-*.tm) || exit 1 # its children have their own
	[ "$(stat -c %a ledgers "$file" | tr '\n' ' ')" = "700 600 " ] || { echo "modes"; fail=1; }
	"$cli" report --json "$file" >report || { echo "$mode: the reader failed"; exit 1; }
	"$cli" report "$file" | grep -q 'killed (no mark of a clean exit)' || { echo "$mode: not said to be killed"; fail=1; }
	python3 - $mode <<'P' || fail=1
import json, struct, sys
counts = open("counts", "rb").read()
objects = sum(struct.unpack_from("<q", counts, i * 128)[0] for i in range(4))
size = sum(struct.unpack_from("<q", counts, i * 128 + 8)[0] for i in range(4))
doc = json.load(open("report"))
def own(site):
    frame = doc["frames"][doc["stacks"][site["stack"]]["frames"][0]] if site["stack"] is not None else None
    return frame and frame["module"] is not None and doc["modules"][frame["module"]]["path"].endswith("/ledger_subject")
rows = [s for s in doc["sites"] if own(s)]
seen_bytes, seen = (sum(s[k] for s in rows) for k in ("live_bytes", "live_objs"))
exact = 0 if sys.argv[1] == "idle" else 4
ok = abs(seen - objects) <= exact and abs(seen_bytes - size) <= exact * 170000 and objects > 1000
print(f"{sys.argv[1]}: program {objects} objects {size} bytes, ledger {seen} objects {seen_bytes} bytes")
sys.exit(not ok)
P
done
exit $fail
