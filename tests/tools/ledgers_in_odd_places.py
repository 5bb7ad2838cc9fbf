#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""TIERMALLOC_DIR may name what is no directory of ours: the program runs all the same and says so in one line.
A relative one stays where the program began, wherever it goes. Two containers whose processes have the same
number and begin in the same tick do not take each other's ledger."""
import glob
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TM_SRC"], "tests/tools"))
from ledger_file import Ledger, fields

TOOL, SUBJECT = os.environ["TM_BUILD"] + "/tiermalloc", os.environ["TM_TESTS"] + "/odd_places_subject"


def run(directory, *words, ok=True):
    env = dict(os.environ, LD_PRELOAD=os.environ["TM_LIB"], TIERMALLOC_DIR=directory, TIERMALLOC_LEDGER="deep")
    done = subprocess.run([SUBJECT, *words], env=env, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "done\n", (directory[:60], words, done)
    lines = done.stderr.splitlines()
    assert len(lines) == (0 if ok else 1) and all(l.startswith("tiermalloc: ") for l in lines), (directory[:60], lines)


os.mkdir("real", 0o700)
os.mkdir("open", 0o755)
os.symlink("real", "link")
os.mkfifo("fifo")
open("file", "w").close()
here = os.getcwd()
for bad in ("none/none", "link", "fifo", "file", "open", "/" + "x" * 4000, "/tmp/" + "y/" * 2000, "/proc/self", "/dev/null", "/dev/shm"):
    run(bad, ok=False)
    run(here + "/" + bad if bad[0] != "/" else bad, "go", ok=False)
run("new\nline")
assert os.path.isdir("new\nline")

# what is opened later, by name: windows of births
run("rel", "go")
path, = glob.glob("rel/*.tm")
ledger = Ledger(path)
assert ledger.header["births_lost"] == 0 and ledger.header["lives"] > 0, ledger.header["births_lost"]

# the program makes its ledger one of another name space, then starts itself anew: the same number and tick
run(here + "/spaces", "exec", str(fields("tm_ledger_header")["pid_namespace"][0]))
names = sorted(os.path.basename(p) for p in glob.glob("spaces/*.tm"))
assert len(names) == 2 and names[0].split("-")[0] == names[1].split("-")[0], names
headers = [Ledger("spaces/" + n).header for n in names]
assert len({h["start_time"] for h in headers}) == 1 and 12345 in {h["pid_namespace"] for h in headers}, headers
listed = subprocess.run([TOOL, "ls"], env=dict(os.environ, TIERMALLOC_DIR=here + "/spaces"), capture_output=True, text=True)
assert listed.returncode == 0 and listed.stdout.count(names[0].split("-")[0]) >= 2, listed
