#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""leaks PID scans the process and finds what nothing points to; --who-holds names what does."""
import json
import os
import re
import subprocess
import sys
import time

TOOL = os.environ["TM_BUILD"] + "/tiermalloc"
SUBJECT = os.environ["TM_TESTS"] + "/leaks_subject"
WANTED = {
    "static": ("registry::add", r"blocks of s:\S+  registry::add .*\n.*variable names of leaks_subject"),
    "reachable": ("remember", r"blocks of .*remember(.*\n)*.*variable prefixes of leaks_subject"),
    "plain": ("keep_plain", r"memory that is no block of ours \([0-9]{3,} pointers\)"),
    # Its head always points to an object that is newer than the copy of the ledger.
    "list": ("push", r"each other, as a list or a tree does \([0-9]+ pointers\)\n.*"
                     r"variable newest of leaks_subject \(1 pointer\)"),
    "behind": ("keep_behind", r"^(?!(.*\n)*.*padding)held by  blocks of s:\S+  keep_behind"),
    "unreachable": ("lose", r"nothing that could be read points there"),
    "exception": ("parse_request", r"nothing that could be read points there"),
}
problems = []


def tool(*words):
    return subprocess.run([TOOL, *map(str, words)], capture_output=True, text=True, check=False)


runs = {}
for kind in WANTED:
    env = dict(os.environ, LD_PRELOAD=os.environ["TM_LIB"], TIERMALLOC_DIR=os.getcwd() + "/" + kind,
               TIERMALLOC_LEAK_WINDOW_MS="500")
    runs[kind] = subprocess.Popen([SUBJECT, kind], env=env)
try:
    time.sleep(4)
    for kind, (function, pattern) in WANTED.items():
        pid = runs[kind].pid
        done = tool("leaks", pid, "--json")
        if done.returncode not in (0, 3, 4):
            problems.append("%s: status %d: %s" % (kind, done.returncode, done.stderr))
            continue
        document = json.loads(done.stdout)
        lost = [leak["site"] for leak in document["leaks"] if leak["class"] == "unreachable"]
        site = max((s for s in document["sites"] if s["stack"] is not None and any(
            (document["frames"][f]["fn"] or "").startswith(function)
            for f in document["stacks"][s["stack"]]["frames"])), key=lambda s: s["live_objs"])
        should = kind in ("unreachable", "exception")
        if (site["id"] in lost) != should or (not should and lost):
            problems.append("%s: unreachable are %s, the site is %s" % (kind, lost, site["id"]))
        held = tool("leaks", pid, "--no-scan", "--site", site["id"], "--who-holds").stdout
        held = held[held.find("held by"):]
        if not re.search(pattern, held):
            problems.append("%s: %s" % (kind, held))
        events = tool("report", pid).stdout
        if not re.search(r" ago  scanned for leaks  %s blocks, \S+( \w+)?, that nothing points to" % (
                "[1-9][0-9]*" if should else "0"), events):
            problems.append("%s: no event of the scan in %s" % (kind, events))
        print("%-12s unreachable %d   %s" % (kind, len(lost), held.strip().replace("\n", "; ")))
finally:
    for run in runs.values():
        run.kill()
        run.wait()
print("\n".join(problems))
sys.exit(bool(problems))
