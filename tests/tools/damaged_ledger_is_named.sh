#!/bin/bash
# SPDX-License-Identifier: MIT
# A file that is no ledger costs one line that names it, and status 2; a damaged one is read as far as
# it makes sense. Never a signal, never long.
set -u
tool=$TM_BUILD/tiermalloc
fail=0
refused() {
	"$tool" report "$1" >out 2>err
	status=$?
	[ $status = 2 ] && [ ! -s out ] && [ "$(wc -l <err)" = 1 ] && grep -q "'$1'" err ||
		{ echo "$1: status $status"; cat out err; fail=1; }
}
: >empty
head -c 100000 /dev/urandom >noise
mkdir -p folder
for f in empty noise folder missing /dev/null; do refused "$f"; done
TIERMALLOC_DIR=$PWD/ledgers LD_PRELOAD=$TM_LIB sh -c 'x=$(seq 1 2000); exit 0'
whole=$(ls ledgers/*.tm | head -1)
"$tool" report "$whole" | grep -q '^live [0-9]' || { echo "a whole ledger is not read"; fail=1; }
cp --sparse=always "$whole" cut
truncate -s 3G cut
refused cut
for field in 0:magic 8:version 32:granules 40:heaps 68:maps_bytes; do
	cp --sparse=always "$whole" bad
	printf '\377\377\377\377\377\377\377\177' | dd of=bad bs=1 seek="${field%%:*}" conv=notrunc status=none
	refused bad
	grep -q "${field#*:}" err || { echo "$field: not named"; cat err; fail=1; }
done
python3 - "$whole" "$tool" <<'P' || fail=1
import random, shutil, subprocess, sys
random.seed(7)
for n in range(40):
    subprocess.run(["cp", "--sparse=always", sys.argv[1], "bad"], check=True)
    with open("bad", "r+b") as f:
        for _ in range(200):
            f.seek(random.choice((72, 65536, 1 << 30, 2 << 30, 4 << 30)) + random.randrange(100000))
            f.write(bytes([random.randrange(256)]))
    run = subprocess.run([sys.argv[2], "report", "bad"], capture_output=True, timeout=60)
    if run.returncode not in (0, 2):
        sys.exit(f"mutation {n}: status {run.returncode}")
P
exit $fail
