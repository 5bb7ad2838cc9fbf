#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""diff names the files that it was given, a merge is no process, what --since below a window counts is not
called exact, and top says that its process has ended."""
import os
import subprocess
import sys

BUILD = os.environ["TM_BUILD"]
TOOL = BUILD + "/tiermalloc"
problems = []
subprocess.run([BUILD + "/tests/tools/make_ledger", "l.tm", "20"], check=True)


def look(words, *said, without="\0"):
    run = subprocess.run([TOOL, *words], capture_output=True, text=True, check=False)
    if "built without jansson" in run.stderr:
        return
    text = " ".join((run.stdout + run.stderr).split())
    if run.returncode not in (0, 3, 4) or not all(w in text for w in said) or without in text:
        problems.append("%s: status %d, '%s' '%s'" % (words, run.returncode, run.stdout[:400], run.stderr))


for to in ("a.json", "b.json"):
    look(["export", "--format", "json", "l.tm", "-o", to])
look(["merge", "l.tm", "l.tm", "-o", "m.json"])
look(["diff", "a.json", "b.json"], "tiermalloc diff b.json against a.json", without="l.tm")
look(["diff", "l.tm", "m.json"], "tiermalloc diff m.json against l.tm")
look(["report", "--from-json", "m.json"], "merge of 2 processes", without=" pid ")
look(["report", "--since", "1ms", "l.tm"], "below a window", "not exact")
look(["top", "l.tm"], "has ended")
print("\n".join(problems))
sys.exit(bool(problems))
