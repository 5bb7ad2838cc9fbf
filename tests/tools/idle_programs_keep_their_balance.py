#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A program that holds memory and waits, after a few calls: what it was made of is in its ledger as it is now,
not as of the last call, and is told after a kill."""
import glob
import json
import os
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.environ["TM_SRC"] + "/tests/tools")
import ledger_file

TOOL = os.environ["TM_BUILD"] + "/tiermalloc"
HELD = 48 << 20
sheets, at = ledger_file.fields("tm_ledger_header")["sheets"][0], ledger_file.area("SHEETS_AT")
each = ledger_file.area("SHEET_BYTES")
child = subprocess.Popen([os.environ["TM_TESTS"] + "/idle_subject"], stdout=subprocess.PIPE, text=True,
                         env=dict(os.environ, LD_PRELOAD=os.environ["TM_LIB"], TIERMALLOC_DIR="ledgers"))
try:
    assert child.stdout.readline() == "ready\n"
    path, = glob.glob("ledgers/*.tm")
    seen, end = 0, time.time() + 100
    with open(path, "rb") as file:
        while seen < HELD and time.time() < end:
            time.sleep(.1)
            file.seek(sheets)
            count, = struct.unpack("<Q", file.read(8))
            file.seek(at + (count + 1) % 2 * each)
            seen = struct.unpack("<QQ", file.read(16))[1] if count else 0
finally:
    child.kill()
    child.wait()
done = subprocess.run([TOOL, "report", "--json", path], capture_output=True, text=True, check=True)
balance = json.loads(done.stdout)["balance"]
print(seen, balance)
assert seen >= HELD, "the last balance is of %d bytes resident" % seen
assert balance["rss_bytes"] >= HELD and abs(balance["nonresident"]) <= 1 << 20, balance
