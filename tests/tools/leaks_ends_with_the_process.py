#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The process is killed between the two passes of its leak scan, and its parent doesn't ask for its status:
`leaks` ends then, and calls it killed, instead of waiting for the second pass.
Failure: 75 s, or a process that runs."""
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["TM_SRC"], "tests/tools"))
from ledger_file import Ledger

TOOL = os.environ["TM_BUILD"] + "/tiermalloc"
env = dict(os.environ, LD_PRELOAD=os.environ["TM_LIB"], TIERMALLOC_DIR=os.getcwd() + "/ledgers")
WORK = """
import time
print(flush=True)
while True:
    kept = [bytearray(700 + i) for i in range(9000)]
    time.sleep(.005)
"""
subject = subprocess.Popen([sys.executable, "-c", WORK], env=env, stdout=subprocess.PIPE)
# the program runs: its ledger is there
subject.stdout.readline()
path = "ledgers/" + os.listdir("ledgers")[0]
ledger = Ledger(path)


def passes():
    return ledger.record("header", 0)["scan_passes"]


# on a busy machine the first pass may come too late for it to wait for another
for _ in range(8):
    before = passes()
    leaks = subprocess.Popen([TOOL, "leaks", path, "--json"], stdout=subprocess.PIPE, text=True)
    while leaks.poll() is None and passes() == before:
        time.sleep(0.05)
    if leaks.poll() is None:
        break
else:
    subject.kill()
    print("the machine is too busy for a leak scan")
    sys.exit(77)
subject.kill()
out = leaks.communicate()[0]
assert json.loads(out)["process"]["ended"] == "killed", json.loads(out)["process"]
again = subprocess.run([TOOL, "report", path, "--json"], capture_output=True, text=True).stdout
assert json.loads(again)["process"]["ended"] == "killed", json.loads(again)["process"]
subject.wait()
