#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Forked children under TIERMALLOC_DIR have ledgers of their own that say to the byte what each kept, killed or
not, in files of a few pages: a little in each table costs a page, not four or sixteen. A child that only
uses what its parent had at hand leaves none.
Failure: a thousand children of a server leave half a GiB in /dev/shm."""
import glob
import json
import os
import subprocess

TOOL, SUBJECT = os.environ["TM_BUILD"] + "/tiermalloc", os.environ["TM_TESTS"] + "/children_subject"
KEPT, CHILDREN, BYTES_MAX = 100, 30, 192 << 10


def children(directory, count, kept):
    env = dict(os.environ, LD_PRELOAD=os.environ["TM_LIB"], TIERMALLOC_DIR=directory)
    done = subprocess.run([SUBJECT, str(count), str(kept)], env=env, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done
    return done.stdout.split()


def kept_by(path):
    done = subprocess.run([TOOL, "report", "--json", path], capture_output=True, text=True)
    assert done.returncode == 0, done
    doc = json.loads(done.stdout)
    rows = [s for s in doc["sites"] if s["stack"] is not None and any(
        doc["frames"][f]["fn"] == "child_work" for f in doc["stacks"][s["stack"]]["frames"])]
    return sum(s["live_objs"] for s in rows), sum(s["live_bytes"] for s in rows)


wanted = (KEPT, sum(i * 53 % 2000 + 8 for i in range(KEPT)))
for number, pid in enumerate(children("many", CHILDREN, KEPT)):
    path, = glob.glob("many/%s-*.tm" % pid)
    size = os.stat(path).st_blocks * 512
    assert size <= BYTES_MAX, (number, size)
    assert kept_by(path) == wanted, (number, kept_by(path), wanted)
assert len(glob.glob("many/*.tm")) == CHILDREN + 1

children("idle", CHILDREN, 0)
assert len(glob.glob("idle/*.tm")) == 1, os.listdir("idle")
