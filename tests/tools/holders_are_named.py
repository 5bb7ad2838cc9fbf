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


def look(kind):
    """What may be right the next time, what is wrong for good, and what was seen."""
    function, pattern = WANTED[kind]
    pid = runs[kind].pid
    should = kind in ("unreachable", "exception")
    done = tool("leaks", pid, "--json")
    if done.returncode not in (0, 3, 4):
        return [], ["%s: status %d: %s" % (kind, done.returncode, done.stderr)], ""
    document = json.loads(done.stdout)
    lost = [leak["site"] for leak in document["leaks"] if leak["class"] == "unreachable"]
    site = max((s for s in document["sites"] if s["stack"] is not None and any(
        (document["frames"][f]["fn"] or "").startswith(function)
        for f in document["stacks"][s["stack"]]["frames"])), key=lambda s: s["live_objs"], default=None)
    if not should and lost:
        return [], ["%s: unreachable are %s" % (kind, lost)], ""
    if site is None or should and site["id"] not in lost:
        return ["%s: unreachable are %s, the site is %s" % (kind, lost, site and site["id"])], [], ""
    again = []
    held = tool("leaks", pid, "--no-scan", "--site", site["id"], "--who-holds").stdout
    held = held[held.find("held by"):]
    if not re.search(pattern, held):
        again.append("%s: %s" % (kind, held))
    events = tool("report", pid).stdout
    if not re.search(r" ago  scanned for leaks  %s blocks, \S+( \w+)?, that nothing points to" % (
            "[1-9][0-9]*" if should else "0"), events):
        again.append("%s: no event of the scan in %s" % (kind, events))
    return again, [], "%-12s unreachable %d   %s" % (kind, len(lost), held.strip().replace("\n", "; "))


runs = {}
for kind in WANTED:
    env = dict(os.environ, LD_PRELOAD=os.environ["TM_LIB"], TIERMALLOC_DIR=os.getcwd() + "/" + kind,
               TIERMALLOC_LEAK_WINDOW_MS="500")
    runs[kind] = subprocess.Popen([SUBJECT, kind], env=env)
try:
    for kind in WANTED:
        # A young process's sites are not judged yet; and memory that moves between the copy of the ledger and
        # its reading is found in neither: then the process is asked again.
        for attempt in range(40):
            again, wrong, line = look(kind)
            if wrong or not again:
                break
            time.sleep(1)
        problems += wrong or again
        print(line)
finally:
    for run in runs.values():
        run.kill()
        run.wait()
print("\n".join(problems))
sys.exit(bool(problems))
