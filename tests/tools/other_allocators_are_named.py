#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What other allocators map has a row of its own in the balance: pools of CPython's small objects, right
within 1 % of what the interpreter says of itself, of every version that is here (of two in the short form); V8's heap. While the
program runs and after it was killed. None of it is taken for tables of the library."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.environ["TM_SRC"] + "/tests/tools")
import ledger_file

TOOL = os.environ["TM_BUILD"] + "/tiermalloc"
SHEETS = ledger_file.fields("tm_ledger_header")["sheets"][0]
problems = []

PYTHON = """
import sys, time
block = bytes(8 << 20)
rows = [(float(i), i) for i in range(500000)]
del rows[::50]
sys._debugmallocstats()
sys.stderr.write("ready\\n")
sys.stderr.flush()
time.sleep(200)
"""
NODE = """
let rows = [];
for (let i = 0; i < 600000; i++) rows.push({x: i, y: [i]});
global.gc();
let block = Buffer.alloc(8 << 20, 1);
const m = process.memoryUsage();
process.stderr.write("heapTotal " + m.heapTotal + " used " + m.heapUsed + "\\nready\\n");
setTimeout(() => rows.length, 200000);
"""


def pythons():
    here = [shutil.which("python3"), "/usr/bin/python3", sys.executable]
    here += sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3")))
    found = {}
    for path in here:
        if path and os.path.exists(path):
            said = subprocess.run([path, "-c", "import sys; print(sys.executable, hasattr(sys, '_debugmallocstats') and"
                                   " sys.implementation.name == 'cpython' and sys.version_info >= (3, 6))"],
                                  capture_output=True, text=True, check=False).stdout.split()
            if said and said[-1] == "True":
                found.setdefault(os.path.realpath(said[0]), said[0])
    some = list(found.values())
    return some if os.environ.get("TM_LONG") else some[:1] + some[-1:]


def row(document, name):
    return next((m for m in document["mappings"] if m["name"] == name), {"bytes": 0, "mapped_bytes": 0})


def judge(name, said, which):
    """What is wrong with the balance; None: nothing."""
    done = subprocess.run([TOOL, "report", "--json", str(which)], capture_output=True, text=True, check=False)
    if done.returncode:
        return "status %d: %s" % (done.returncode, done.stderr)
    document = json.loads(done.stdout)
    balance = document["balance"]
    if abs(balance["residual"]) > balance["rss_bytes"] / 100:
        return "residual %d of %d" % (balance["residual"], balance["rss_bytes"])
    if row(document, "tables of the allocator")["bytes"] > 3 << 20:
        return "tables of the library: %s" % row(document, "tables of the allocator")
    if name == "node":
        # What lives stays; the rest is collected and given back while the program waits.
        total, used = map(int, re.search(r"heapTotal (\d+) used (\d+)", said).groups())
        heap = row(document, "V8 heap")["bytes"]
        return None if .85 * used < heap < 1.1 * total else "V8 heap %d, it says %d of %d" % (heap, used, total)
    number = {key: int(value.replace(",", "")) for key, value in
              re.findall(r"^(?:# )?([\w ]+?)\s+=\s+([\d,]+)$", said, flags=re.M)}
    unused = int(re.search(r"unused pools \* \d+ bytes\s+=\s+([\d,]+)", said).group(1).replace(",", ""))
    used = sum(number["bytes " + k] for k in ("in allocated blocks", "in available blocks", "lost to pool headers",
                                              "lost to quantization"))
    pools = row(document, "pymalloc arenas")
    # Pools that are free again may still be resident, or never were.
    if not (.99 * used <= pools["mapped_bytes"] <= 1.01 * (used + unused)) or \
            not .99 * used <= pools["bytes"] <= 1.01 * (used + unused):
        return "pymalloc arenas %s, it says %d and %d unused" % (pools, used, unused)
    return None


def sheets(pid):
    files = glob.glob("ledgers/%d-*.tm" % pid)
    if not files:
        return 0
    with open(max(files), "rb") as file:
        file.seek(SHEETS)
        return int.from_bytes(file.read(8), "little")


def check(name, command):
    env = dict(os.environ, LD_PRELOAD=os.environ["TM_LIB"], TIERMALLOC_DIR=os.getcwd() + "/ledgers")
    with open("said", "w+", encoding="utf-8") as out:
        process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=out)
        try:
            end, said = time.time() + 100, ""
            while "ready" not in said and time.time() < end and process.poll() is None:
                time.sleep(.1)
                said = open("said", encoding="utf-8").read()
            if "ready" not in said:
                problems.append("%s: not ready: %s" % (name, said[-300:]))
                return
            # The first of these may have begun before the program was ready.
            for _ in range(2):
                seen = sheets(process.pid)
                while sheets(process.pid) == seen and time.time() < end:
                    running = judge(name, said, process.pid)
                    time.sleep(1)
        finally:
            process.kill()
            process.wait()
    gone = judge(name, said, max(glob.glob("ledgers/%d-*.tm" % process.pid)))
    print("%-60s running: %s  killed: %s" % (" ".join(command[:1])[-60:], running or "right", gone or "right"))
    problems.extend("%s: %s" % (" ".join(command[:1]), p) for p in (running, gone) if p)


os.makedirs("ledgers", 0o700, exist_ok=True)
for python in pythons():
    check("python", [python, "-c", PYTHON])
if shutil.which("node"):
    check("node", ["node", "--expose-gc", "-e", NODE])
for problem in problems:
    print("PROBLEM " + problem)
sys.exit(1 if problems else 0)
