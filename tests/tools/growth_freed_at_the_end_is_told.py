#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A list that grows while the program serves and is freed as it ends: nothing lives in the ledger, and
the report does not call it a leak, but says that it grew, at which rate, and was freed."""
import glob
import json
import os
import subprocess
import sys

SUBJECT = """
import time
keep, end = [], time.time() + 15
while time.time() < end:
    keep.append(bytes(2000))
    x = [bytes(300) for _ in range(50)]
    time.sleep(.001)
"""
env = dict(os.environ, TIERMALLOC_DIR=os.path.abspath("ledgers"), TIERMALLOC_LEAK_WINDOW_MS="100", PYTHONMALLOC="malloc",
           LD_PRELOAD=os.environ["TM_LIB"])
subprocess.run([os.path.realpath(sys.executable), "-c", SUBJECT], env=env, check=True)
ledger, = glob.glob("ledgers/*.tm")
run = subprocess.run([os.path.join(os.environ["TM_BUILD"], "tiermalloc"), "report", ledger, "--json"], capture_output=True, text=True)
if run.returncode not in (0, 3):
    sys.exit(f"status {run.returncode} {run.stderr}")
doc = json.loads(run.stdout)
for leak in doc["leaks"]:
    if leak["class"] == "growing" and not (leak["slope_bytes_per_h"] > 0 and leak["ci95"][0] > 0):
        sys.exit(f"a leak without a rate: {leak}")
    if leak["class"] == "growing" and leak["live_objs"] == 0:
        sys.exit(f"what was freed is called growing: {leak}")
if any("freed at the end" in w["note"] and "0 B/h" in w["note"] for w in doc["watch"]):
    sys.exit(f"no rate: {doc['watch']}")
print(doc["verdict"]["text"])
print(doc["watch"])
