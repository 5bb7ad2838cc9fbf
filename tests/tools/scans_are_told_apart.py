#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""That no scan ran, that one of the two passes ran, that scans found nothing and that they found something
read differently, in the text, the JSON and the page; so does why there was none."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TM_SRC"], "tests/tools"))
from scanning import STOP, Subject

TOOL = os.environ["TM_BUILD"] + "/tiermalloc"
KEYS = {"state", "passes", "at_unix_ns", "read_bytes", "unread_bytes", "threads_stopped", "threads_missed", "stopped_us", "found_objs",
        "found_bytes", "young_objs", "young_bytes", "why"}


def leaks(target, *options):
    run = subprocess.run([TOOL, "leaks", target, *options], capture_output=True, text=True, check=False)
    assert run.returncode in (0, 3, 4), run
    return run.stdout


def look(target, state, begin, *more, options=("--no-scan",)):
    text = leaks(target, *options)
    lines = [line for line in text.splitlines() if line.startswith("scan  ")]
    print(lines)
    assert len(lines) == 1 and lines[0].startswith("scan  " + begin), text
    for word in more:
        assert word in lines[0], text
    doc = json.loads(leaks(target, "--json", "--no-scan"))["scan"]
    assert set(doc) == KEYS and doc["state"] == state, doc
    page = "page-%s.html" % state
    leaks(target, "--html", page, "--no-scan")
    assert os.path.getsize(page) > 10000
    return doc


s = Subject("kept")
never = look(s.path, "never", "never ran: none was asked for (--no-scan)")
assert never["passes"] == 0 and never["at_unix_ns"] is None and never["found_objs"] is None, never
s.scan(STOP)
once = look(s.path, "once", "undecided, it takes two passes: 1 pass, the last ")
assert once["passes"] == 1 and once["why"], once
s.scan(STOP)
s.scan(STOP)
nothing = look(s.path, "nothing", "nothing unreachable", " passes, the last ", " read, ", options=())
assert nothing["passes"] >= 3 and nothing["found_objs"] == 0 and nothing["read_bytes"] > 300000, nothing
s.p.kill()
s.p.wait()
assert look(s.path, "nothing", "nothing unreachable", "before the end")["why"] is None

s = Subject("idle")
path = s.path
s.scan(STOP)
s.scan(STOP)
found = look(path, "found", "", " objects unreachable, ", ": 2 passes, the last ")
assert found["found_objs"] >= 190 and found["found_bytes"] > 600000, found
s.p.kill()
s.p.wait()

# Why there was none.
s = Subject("busy")
s.p.kill()
s.p.wait()
look(s.path, "never", "never ran: nobody asked for one while the process ran")
s = Subject("asleep")
os.kill(s.p.pid, 19)
text = leaks(s.path)
assert "scan  never ran: the process did not answer" in text, text
s.p.kill()
s.p.wait()
