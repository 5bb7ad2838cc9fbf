#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Memory of every kind on a device has its rows, with function and amount, in each report and export:
leaks, fragmentation, full, top, HTML, pprof, Prometheus, JSON; of a process that runs and of one that was
killed. What grew between two moments stands in the diff."""
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys

TOOL = os.path.join(os.environ["TM_BUILD"], "tiermalloc")
SUBJECT = os.path.join(os.environ["TM_TESTS"], "reports_subject")
MIB = 1 << 20
# Kind: function, bytes that live, blocks.
HELD = {"device": [("hold_device", 12 * MIB, 12), ("use_device", 3 * MIB, 1), ("reserve", 20 * MIB, 1)],
        "managed": [("hold_managed", 5 * MIB, 1)], "pinned host": [("hold_pinned", 7 * MIB, 1)],
        "registered host": [("hold_registered", 8192, 1)], "stream-ordered": [("hold_async", 9 * MIB, 1)],
        "virtual memory": [("hold_chunk", 22 * MIB, 1)], "arrays": [("hold_array", None, 1)],
        "of other processes": [("open_others", 11 * MIB, 1)]}
CACHE = "reserved by a framework's cache"
problems = []


def expect(holds, what):
    if not holds:
        problems.append(what)


def start(*args, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("TIERMALLOC")}
    env |= {"LD_PRELOAD": os.environ["TM_LIB"], "TIERMALLOC_DIR": os.path.abspath("ledgers")} | more
    p = subprocess.Popen([SUBJECT, *args], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    line = p.stdout.readline()
    if line != "ready\n":
        sys.exit(f"the subject {args} said {line!r} and ended with {p.wait()}")
    return p


def tool(*args, statuses=(0,)):
    run = subprocess.run([TOOL, *args], capture_output=True, text=True)
    expect(run.returncode in statuses, f"{args}: status {run.returncode}: {run.stderr}")
    return run.stdout


def lines_with(text, *words):
    return [l for l in text.splitlines() if all(w in l for w in words)]


def size(value):
    return f"{value / MIB:.1f} MiB" if value >= MIB else f"{value / 1024:.1f} KiB"


def check_text(name, text, by_site):
    for kind, sites in HELD.items():
        if not by_site:
            total = sum(b or 0 for _, b, _ in sites)
            found = lines_with(text, kind)
            expect(found, f"{name}: no row of {kind}:\n{text}")
            expect(total == 0 or any(size(total) in l for l in found), f"{name}: {kind} is not {size(total)}: {found}")
            continue
        for fn, live, blocks in sites:
            found = lines_with(text, fn)
            expect(found, f"{name}: no row of {fn}:\n{text}")
            expect(not found or live is None or size(live) in found[0], f"{name}: {fn} holds not {live}: {found}")
            expect((CACHE in "".join(found)) == (fn == "reserve"), f"{name}: whose cache is it: {found}")


def check_json(doc):
    rows = {g["memory"]: g for g in doc["gpu"]}
    expect(set(rows) == set(HELD), f"json: kinds {sorted(rows)}")
    for kind, sites in HELD.items():
        g = rows[kind]
        expect(g["dev"] == 0 and g["api"].startswith("cu"), f"json: {g}")
        expect(sum(s["live_bytes"] for s in g["sites"]) == g["live_bytes"], f"json: sum of {kind}")
        for fn, live, blocks in sites:
            own = [s for s in g["sites"] if doc["frames"][doc["stacks"][s["stack"]]["frames"][0]]["fn"] == fn]
            expect(len(own) == 1, f"json: {fn} has {len(own)} rows in {kind}")
            for s in own:
                expect(live in (None, s["live_bytes"]) and s["live_objs"] == blocks, f"json: {fn}: {s}")
                expect(int(s["context"], 16) != 0, f"json: context of {fn}: {s}")
                expect((s["reserved_by"] == "libc10_cuda.so") == (fn == "reserve"), f"json: cache of {fn}: {s}")
    used = rows["device"]["sites"]
    expect(any(s["alloc_objs"] == 41 and s["live_objs"] == 1 for s in used), f"json: what was freed: {used}")


def check_pprof(ledger):
    tool("export", "--format", "pprof", ledger, "-o", "p.pb.gz")
    data = gzip.open("p.pb.gz").read()
    for word in (b"device_space", b"device_objects", b"pinned host", b"hold_managed", b"reserved_by", b"libc10_cuda.so"):
        expect(word in data, f"pprof: no {word}")
    if shutil.which("go") is None or subprocess.run(["go", "tool", "pprof", "-h"], capture_output=True).returncode not in (0, 2):
        return
    top = subprocess.run(["go", "tool", "pprof", "-top", "-sample_index=device_space", "-unit=B", "-nodefraction=0", "p.pb.gz"],
                         capture_output=True, text=True).stdout
    for sites in HELD.values():
        for fn, live, _ in sites:
            expect(live is None or re.search(rf"^ *{live}B .* {fn}\b", top, flags=re.M), f"pprof: {fn} {live}:\n{top}")


def check(target, over):
    check_text("leaks", tool("leaks", target, statuses=(0, 3, 4)), True)
    check_text("full", tool("report", target), True)
    check_text("frag", tool("frag", target), False)
    check_json(json.loads(tool("report", target, "--json")))
    if not over:
        balance = tool("report", target).partition("balance of")[2]
        expect(re.search(r" 7\.0 MiB  pinned host memory that CUDA was asked for", balance), f"balance:\n{balance}")
        check_text("top", tool("top", "-p", target), False)
    page = tool("export", "--format", "html", "--uncompressed", target, "-o", "-")
    for kind, sites in HELD.items():
        expect(f'"memory":"{kind}"' in page and f'"{sites[0][0]}"' in page, f"html: no {kind}")
    metrics = tool("export", "--format", "prometheus", target, "-o", "-")
    expect(re.search(r"gpu_live_bytes\{.*cuMemHostAlloc.*\} 7340032", metrics), f"prometheus:\n{metrics}")
    check_pprof(target)


owner = start("owner")
before = tool("report", str(owner.pid), "--json")
with open("owner.json", "w", encoding="utf-8") as f:
    f.write(before)
if not json.loads(before)["gpu"]:
    owner.stdin.close()
    print("built without the CUDA hooks")
    sys.exit(77)
subject = start()
check(str(subject.pid), False)
leaks = tool("leaks", str(subject.pid), statuses=(0, 3, 4))
expect(lines_with(leaks, "CANDIDATE", "hold_device"), f"leaks: no candidate:\n{leaks}")
expect(len(lines_with(leaks, "CANDIDATE")) == 1, f"leaks: more than one candidate:\n{leaks}")
with open("now.json", "w", encoding="utf-8") as f:
    f.write(tool("report", str(subject.pid), "--json"))
more = tool("diff", "owner.json", "now.json")
for sign, bytes_, fn in (("+", 12 * MIB, "hold_device"), ("-", 11 * MIB, "own")):
    expect(lines_with(more, f"{sign}{bytes_} ", fn), f"diff: {fn}:\n{more}")
os.kill(subject.pid, signal.SIGKILL)
subject.wait()
ledger = [os.path.join("ledgers", n) for n in os.listdir("ledgers") if n.startswith(f"{subject.pid}-")]
expect(len(ledger) == 1, f"ledgers of the killed one: {ledger}")
check(ledger[0], True)
tool("merge", ledger[0], "owner.json", "-o", "both.json")
both = json.load(open("both.json", encoding="utf-8"))
for g in both["gpu"]:
    want = sum(b for _, b, _ in HELD[g["memory"]] if b) + (11 * MIB if g["memory"] == "device" else 0)
    expect(want == g["live_bytes"] or g["memory"] == "arrays", f"merge: {g['memory']} {g['live_bytes']}, not {want}")
# Pools are told as of the last sample: the subject asks for one by allocating.
pooled = start(TIERMALLOC_CUDA="pool", TIERMALLOC_CUDA_POOL="slab")
doc = {"gpu_pools": []}
while not doc["gpu_pools"] or doc["timeline"]["series"]["gpu.used"][-1] < 40 * MIB:
    pooled.stdin.write("x" * 64)
    pooled.stdin.flush()
    doc = json.loads(tool("report", str(pooled.pid), "--json"))
for text in (tool("frag", str(pooled.pid)), tool("report", str(pooled.pid))):
    row = re.findall(r"^ +0 slabs +([\d.]+) MiB +([\d.]+) MiB +([\d.]+) MiB +[\d.]+%  (\d+) of (\d+) requests", text, flags=re.M)
    expect(row, f"no row of slabs:\n{text}")
    for reserved, used, idle, hits, all_ in row:
        expect(abs(float(reserved) - float(used) - float(idle)) < .2 and 0 < int(hits) < int(all_), f"slabs: {row}")
slabs = [p for p in doc["gpu_pools"] if p["pool"] == "slabs"]
expect(slabs and slabs[0]["reserved_bytes"] - slabs[0]["used_bytes"] == slabs[0]["idle_bytes"], f"json: {doc['gpu_pools']}")
metrics = tool("export", "--format", "prometheus", str(pooled.pid), "-o", "-")
expect(re.search(r'gpu_pool_used_bytes\{.*pool="slabs"\} \d', metrics), f"prometheus:\n{metrics}")
for p in (pooled, owner):
    p.stdin.close()
    p.wait()
print("\n".join(problems))
sys.exit(1 if problems else 0)
