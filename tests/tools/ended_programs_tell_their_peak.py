#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The fragmentation verdict of a program that has ended says what its memory cost at the peak, when the
blocks lived, and what was held at the end and by whom."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TM_SRC"], "tests/tools"))
from ledger_file import Ledger, area

TOOL = os.path.join(os.environ["TM_BUILD"], "tiermalloc")
env = dict(os.environ, LD_PRELOAD=os.environ["TM_LIB"], TIERMALLOC_DIR=os.path.abspath("ledgers"))
problems = []


def verdict(until_sampled):
    p = subprocess.Popen([os.path.join(os.environ["TM_TESTS"], "peak_subject")], env=env, stdin=subprocess.PIPE)
    path = None
    while until_sampled and path is None:
        names = [n for n in os.listdir("ledgers") if n.startswith(f"{p.pid}-")] if os.path.isdir("ledgers") else []
        for name in names:
            counters = Ledger(f"ledgers/{name}").record("counters", area("COUNTERS_AT"))
            if counters["at_peak_live"] >= 65536 * 1000:
                path = f"ledgers/{name}"
    p.stdin.close()
    p.wait()
    path, = [f"ledgers/{n}" for n in os.listdir("ledgers") if n.startswith(f"{p.pid}-")]
    return subprocess.run([TOOL, "frag", path], capture_output=True, text=True, check=True).stdout.splitlines()[0]


line = verdict(True)
m = re.match(r"VERDICT  at the end ([\d.]+) MiB held for 640 KiB live, mostly free \w+ \w+ \w+ \w+; "
             r"[\d.]+ MiB on sparse pages, (\d+) % pinned by s:[0-9a-f]+ take  peak_subject.c:\d+; "
             r"at the peak of ([\d.]+) MiB resident ([\d.]+) bytes for each live one$", line)
if not m:
    problems.append(f"the verdict is {line}")
else:
    held, share, peak, cost = map(float, m.groups())
    if not (40 < held < 80 and share > 90 and 62 < peak < 90 and 1 < cost < 1.3):
        problems.append(f"figures of {line}")
line = verdict(False)
if "at the end" not in line:
    problems.append(f"of a run that nobody looked at: {line}")
print("\n".join(problems))
sys.exit(bool(problems))
