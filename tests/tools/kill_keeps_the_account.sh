#!/bin/bash
# SPDX-License-Identifier: MIT
# After kill -9, idle or in mid-run, and after sixty forks of both kinds, the ledger's live objects
# and bytes of the program's own sites equal the program's count, within one object per thread.
set -u
cli=$TM_BUILD/tiermalloc
fail=0
for mode in idle busy forks; do
	rm -rf ledgers counts
	TIERMALLOC_DIR=$PWD/ledgers LD_PRELOAD=$TM_LIB "$TM_TESTS/ledger_subject" counts $mode
	[ $? = 137 ] || { echo "$mode: not killed"; exit 1; }
	file=$(ls ledgers/*.tm) || exit 1
	[ "$(stat -c %a ledgers "$file" | tr '\n' ' ')" = "700 600 " ] || { echo "modes"; fail=1; }
	"$cli" report --top 1000 "$file" >report || { echo "$mode: the reader failed"; exit 1; }
	grep -q ' killed$' report || { echo "$mode: not said to be killed"; fail=1; }
	python3 - $mode <<'P' || fail=1
import re, struct, sys
counts = open("counts", "rb").read()
objects = sum(struct.unpack_from("<q", counts, i * 128)[0] for i in range(4))
size = sum(struct.unpack_from("<q", counts, i * 128 + 8)[0] for i in range(4))
rows = re.findall(r"^\s*(\d+)\s+(\d+)\s+\d+\s+\d+\s+ledger_subject\+", open("report").read(), re.M)
seen_bytes, seen = (sum(int(r[i]) for r in rows) for i in (0, 1))
exact = 0 if sys.argv[1] == "idle" else 4
ok = abs(seen - objects) <= exact and abs(seen_bytes - size) <= exact * 170000 and objects > 1000
print(f"{sys.argv[1]}: program {objects} objects {size} bytes, ledger {seen} objects {seen_bytes} bytes")
sys.exit(not ok)
P
done
exit $fail
