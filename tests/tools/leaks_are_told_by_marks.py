#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The program's marks of sessions and steps stand in the ledger, in windows, samples and the header, and
a leak is told by session and by step; after a kill too. A decision by phase or by the caller is told as one."""
import glob
import json
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TM_SRC"], "tests/tools"))
from ledger_file import Ledger, area, fields

TOOL = os.environ["TM_BUILD"] + "/tiermalloc"
env = dict(os.environ, TIERMALLOC_DIR=os.path.abspath("ledgers"), TIERMALLOC_LEAK_WINDOW_MS="100", LD_PRELOAD=os.environ["TM_LIB"])
done = subprocess.run([os.environ["TM_TESTS"] + "/marks_subject", "8"], env=env, capture_output=True, text=True)
sessions, steps = map(int, done.stdout.split())
path, = glob.glob("ledgers/*.tm")

ledger = Ledger(path)
header = ledger.header
for name, true in (("sessions", sessions), ("sessions_ended", sessions), ("tokens", steps)):
    assert true * .9 - 30 <= header[name] <= true, (name, header[name], true)
windows = ledger.table("window", "WINDOWS_AT", min(header["windows"], 128))
for name, true in (("sessions", sessions), ("tokens", steps)):
    seen = sum(w[name] for w in windows)
    assert true * .8 - 30 <= seen <= true, (name, seen, true)
samples = ledger.table("sample", "SAMPLES_AT", min(struct.unpack("<3Q", header["samples"])[0], 600))
tokens = [s["tokens"] for s in samples]
assert tokens == sorted(tokens) and tokens[-1] == header["tokens"], tokens


def report():
    run = subprocess.run([TOOL, "report", "--json", path], capture_output=True, text=True)
    assert run.returncode in (0, 3), run
    return json.loads(run.stdout)


doc = report()
sites = {s["id"]: s for s in doc["sites"]}
size = {leak["site"]: sites[leak["site"]]["size_max"] for leak in doc["leaks"]}
by_size = {size[leak["site"]]: leak for leak in doc["leaks"] if leak["class"] == "growing"}
assert set(by_size) >= {120, 72}, "both leaks are found: %s %s" % (size, doc["verdict"])
for leak, by_session, by_step in ((by_size[120], 2, .1), (by_size[72], 2, .1)):
    assert abs(leak["per_session"] - by_session) < .2 * by_session, leak
    assert abs(leak["per_request"] - by_step) < .2 * by_step, leak
names = {s["name"] for s in doc["timeline"]["series"]} if isinstance(doc["timeline"]["series"], list) else set(doc["timeline"]["series"])
assert {"sessions", "tokens"} <= names, names

# Who decided: written into the ledger as the library writes it.
rows = [r for r in struct.iter_unpack("<4Q", ledger.m[area("ROWS_AT"):area("ROWS_AT") + 32 * 64]) if r[1] > 1]
site = max(rows, key=lambda r: r[1])[3]
decision = fields("tm_ledger_decision")
for code, name in ((6, "phase"), (5, "caller"), (4, "rule")):
    with open(path, "r+b") as f:
        f.seek(area("DECISIONS_AT"))
        f.write(struct.pack("<QBB", site, 2, code))
        f.seek(fields("tm_ledger_header")["decisions"][0])
        f.write(struct.pack("<I", 1))
    assert any(s["authority"] == name for s in report()["sites"]), name
