#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# needs: go
"""'go tool pprof' reads the profiles: totals of every value, inlined frames, labels, build-ids."""
import gzip
import re
import subprocess

from common import NAMES, export, expect, finish, number, path, report, same, skip, total

VALUES = {"inuse_objects": "live_objs", "inuse_space": "live_bytes", "alloc_objects": "alloc_objs",
          "alloc_space": "alloc_bytes", "growth_space": "growth_bytes", "unreachable_space": "unreachable_bytes",
          "pinned_waste": "frag_pinned_bytes"}
DEVICE = {"device_objects": "live_objs", "device_space": "live_bytes"}
if subprocess.run(["go", "tool", "pprof", "-h"], capture_output=True).returncode not in (0, 2):
    skip("go has no pprof here")


def pprof(*args):
    run = subprocess.run(["go", "tool", "pprof", *args], capture_output=True, text=True)
    expect(run.returncode == 0, f"pprof {args}: {run.stderr}")
    return run.stdout


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """Of a message: (number, value)."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        yield key >> 3, value


def check(name):
    doc = report(name)
    message = list(fields(gzip.decompress(export(path(name), "pprof", to="p.pb.gz"))))
    for kind in (4, 5):  # locations, functions: a reader that adds its own numbers them on from the count
        ids = [dict(fields(v))[1] for k, v in message if k == kind]
        same(sorted(ids), list(range(1, len(ids) + 1)), f"{name}: ids of field {kind}")
    raw = pprof("-raw", "p.pb.gz")
    columns = raw.split("Samples:\n")[1].splitlines()
    same([re.sub(r"\[dflt\]", "", c).split("/")[0] for c in columns[0].split()], [*VALUES, *DEVICE], f"{name}: types")
    rows = re.findall(r"^ +((?:\d+ +){8}\d+): ([\d ]*)$", raw, flags=re.M)
    sums = [sum(c) for c in zip(*([int(n) for n in r[0].split()] for r in rows))] or [0] * (len(VALUES) + len(DEVICE))
    on_devices = [sum(number(s[k]) for g in doc["gpu"] for s in g["sites"]) for k in DEVICE.values()]
    same(sums, [total(doc, k) for k in VALUES.values()] + on_devices, f"{name}: sums")
    for m in doc["modules"]:
        if m["path"] and m["build_id"]:
            expect(m["path"] + " " + m["build_id"] in raw, f"{name}: no mapping {m['path']}")
    calls = {int(f["addr"], 16) - 1 for f in doc["frames"] if f["addr"] not in (None, "0x0")}
    places = {int(a, 16) for a in re.findall(r"^ +\d+: 0x([0-9a-f]+) ", raw, flags=re.M)}
    expect(calls <= places, f"{name}: a call's address is missing")
    return raw


raw = {name: check(name) for name in NAMES}
top = pprof("-top", "-sample_index=inuse_space", "-nodecount=5", "-unit=B", "p.pb.gz")
expect("flat%" in top, f"-top: {top}")
export(path("server"), "pprof", to="p.pb.gz")
top = pprof("-top", "-sample_index=growth_space", "-unit=B", "p.pb.gz")
growing = [s for s in report("server")["sites"] if number(s["growth_bytes"])]
expect("std::make_unique<PrefixNode> (inline)" in top, f"-top of growth lacks the inlined function: {top}")
expect(f"{max(number(s['growth_bytes']) for s in growing)}B" in top, f"-top of growth lacks its bytes: {top}")
for word in ("tier:[session]", "leak:[unreachable]", "size_class:[", "age_bucket:[", "site:[", "memory:[pinned host]", "reserved_by:[libc10_cuda.so]"):
    expect(word in raw["server"], f"no label {word}")
finish()
