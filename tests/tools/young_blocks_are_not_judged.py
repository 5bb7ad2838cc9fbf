#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A scan passes over the blocks of its own window: the report of a young process says so in the verdict, in
the scan line and in the blind spots, and gives their number; it does not say that nothing leaks. Nor does
the sum of several such reports, in whatever order they are given."""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TM_SRC"], "tests/tools"))
from scanning import STOP, Subject

s = Subject("idle", window_ms=3600000)
s.scan(STOP)
s.scan(STOP)
run = subprocess.run([os.environ["TM_BUILD"] + "/tiermalloc", "leaks", "--no-scan", s.path], capture_output=True, text=True, check=False)
doc = json.loads(subprocess.run([os.environ["TM_BUILD"] + "/tiermalloc", "leaks", "--no-scan", "--json", s.path], capture_output=True,
                                text=True, check=False).stdout)
json.dump({**doc, "verdict": {**doc["verdict"], "outcome": "fine"}}, open("fine.json", "w", encoding="utf-8"))
sums = []
for reports in (["fine.json", s.path], [s.path, "fine.json"]):
    subprocess.run([os.environ["TM_BUILD"] + "/tiermalloc", "merge", *reports, "-o", "sum.json"], check=True)
    sums.append(subprocess.run([os.environ["TM_BUILD"] + "/tiermalloc", "leaks", "--from-json", "sum.json"], capture_output=True,
                               text=True, check=False))
s.p.kill()
s.p.wait()
print(run.stdout)
assert run.returncode == 4, run
verdict = next(line for line in run.stdout.splitlines() if line.startswith("VERDICT"))
assert "no leak found" not in verdict and ("undecided" in verdict or "too young to be judged" in verdict), verdict
scan = next(line for line in run.stdout.splitlines() if line.startswith("scan  "))
assert re.search(r"nothing unreachable, \d+ objects \(.*\) younger than 1h00m not judged", scan), scan
blind = run.stdout.split("blind spots")[1]
assert re.search(r"blocks younger than 1h00m are not judged: \d+ objects", " ".join(blind.split())), blind
for run in sums:
    assert run.returncode == 4, run
    verdict = next(line for line in run.stdout.splitlines() if line.startswith("VERDICT"))
    assert "no leak found" not in verdict and ("undecided" in verdict or "too young to be judged" in verdict), verdict
    assert not re.search("^scan", run.stdout, re.M), run.stdout  # the passes were those of several processes
assert doc["scan"]["young_objs"] >= 200 and doc["scan"]["young_bytes"] > 100000, doc["scan"]
