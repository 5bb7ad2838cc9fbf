#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""TIERMALLOC_LEDGER=deep keeps when each object was born, within what the program itself measured around the
call, and how long those of each site lived; sizes of 4 to 64 KiB are counted one by one. Without it those
sizes are told too, as what was seen. After a kill as after an end."""
import glob
import json
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TM_SRC"], "tests/tools"))
from ledger_file import Ledger, area

TOOL = os.environ["TM_BUILD"] + "/tiermalloc"
STRIDE, SIDES = 704 << 10, 256 << 10


def births(ledger):
    """By address: as ledger_format.h has it."""
    h, m, got = ledger.header, ledger.m, {}
    for n in range(h["granules"]):
        kind, tier, heap, slot_bytes, slots, first, row, epoch, at = struct.unpack_from("<BBHIHHHHQ", m, area("GRANULES_AT") + 24 * n)
        address = h["zone_base"] + (n << 16)
        if kind == 3:
            got[address], = struct.unpack_from("<Q", m, area("BIRTHS_AT") + 4096 * STRIDE + 8 * n)
        for i in range(first, slots if kind in (1, 2) else 0):
            entry = at + i * (3 if kind == 1 else 8)
            if m[area("SIDES_AT") + entry:area("SIDES_AT") + entry + 2] == b"\xff\xff":
                continue
            where = area("BIRTHS_AT") + entry // SIDES * STRIDE + entry % SIDES // 3 * 8
            got[address + i * slot_bytes], = struct.unpack_from("<Q", m, where)
    return got


def run(how, **more):
    name = how + more.get("TIERMALLOC_LEDGER", "on")
    env = dict(os.environ, TIERMALLOC_DIR=os.path.abspath(name), LD_PRELOAD=os.environ["TM_LIB"], **more)
    done = subprocess.run([os.environ["TM_TESTS"] + "/deep_subject", how], env=env, capture_output=True, text=True)
    path, = glob.glob(name + "/*.tm")
    return done.stdout, path


def report(path):
    done = subprocess.run([TOOL, "report", "--json", path], capture_output=True, text=True)
    assert done.returncode in (0, 3), done
    return json.loads(done.stdout)


for how in ("kill", "exit"):
    out, path = run(how, TIERMALLOC_LEDGER="deep")
    ledger = Ledger(path)
    born, seen = births(ledger), {}
    records = [r for r in ledger.table("lives", "LIVES_AT", ledger.header["lives"])]
    for line in out.splitlines():
        if line.startswith("lives"):
            _, name, count, least, most = line.split()
            hit = [r for r in records if r["objects"] == int(count) and r["least_ns"] >= int(least) * .999
                   and r["most_ns"] <= int(most) * 1.001]
            assert len(hit) == 1, (how, line, [(r["objects"], r["least_ns"], r["most_ns"]) for r in records])
            assert int(least) * int(count) <= hit[0]["sum_ns"] <= int(most) * int(count)
            by_us, by_s = struct.unpack("<32I", hit[0]["by_us"]), struct.unpack("<20I", hit[0]["by_s"])
            assert sum(by_us) == sum(by_s) == int(count), (by_us, by_s)
            assert by_s[1 if name == "longer" else 0] == int(count), by_s
            continue
        name, address, before, after = line.split()
        at = born.get(int(address, 16) & (-1 << 16 if name == "block" else -1))
        assert at is not None and int(before) <= at <= int(after), (how, line, at)
        seen[name] = seen.get(name, 0) + 1
    # malloc's 33 and realloc's 33, each once; the 20 of `grown` died in their realloc too
    ends = sorted(r["objects"] for r in records)
    assert ends.count(33) == 2 and ends.count(20) == 1, ends
    assert seen == dict.fromkeys(("small", "zeroed", "medium", "solo", "block", "aligned", "grown"), 20), seen
    assert ledger.header["births_lost"] <= 10 and ledger.header["lives_lost"] == 0, ledger.header["births_lost"]
    sizes = {s["size"]: (s["count"], s["live"], s["peak"], s["flags"]) for s in ledger.table("size", "SIZES_AT", 64)}
    assert sizes[7000] == (4010, 10, 40, 0), sizes[7000]
    assert sizes[6000] == (20, 20, 20, 0) and sizes[50000] == (20, 20, 20, 0) and sizes[20000] == (20, 20, 20, 0), sizes
    doc = report(path)
    lives = [s["life_hist_log2s"] for s in doc["sites"] if s["life_hist_log2s"]]
    assert [60] in lives and [0, 2] in lives, lives
    assert any((s["size"], s["count"], s["peak_concurrent"]) == (7000, 4010, 40) for s in doc["sizes"]), doc["sizes"]
    assert not any("sizes" in b for b in doc["blind_spots"]), doc["blind_spots"]

out, path = run("exit")
ledger = Ledger(path)
sizes = {s["size"]: (s["count"], s["live"], s["peak"], s["flags"]) for s in ledger.table("size", "SIZES_AT", 64)}
assert sizes[7000][0] == 4010 and sizes[7000][1] == 10 and 10 <= sizes[7000][2] <= 40 and sizes[7000][3] == 1, sizes[7000]
assert sizes[6000][:3] == sizes[50000][:3] == sizes[20000][:3] == (20, 20, 20), sizes
assert any("sizes" in b for b in report(path)["blind_spots"])
