#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# needs: xz
"""The policies place the recorded engines' bytes as their lives demand, without being told the steps.

Per trace: least share of bytes that were asked for after the first step's begin and went to the right
tier; the same of all bytes; the most of them that may be asked for while the phase was still thought
to be loading; dead bytes in arenas are at most max(2 MiB, live) everywhere. At most 1 % of all bytes lie
where they should not: a wrong tier is a wrong place only for blocks of arenas and of learned weights.
"""
import os
import re
import subprocess
import sys

MISPLACED = 1.0
LIMITS = {
    # trace: (right while serving, right of all, taken for loading while serving)
    "llama-nommap": (94.0, 60.0, 1.0),
    "ort": (98.0, 80.0, 1.0),
    "ort-no-arena": (98.0, 98.0, 1.0),
    "rapidocr": (98.0, 98.0, 1.0),
    "torch": (98.0, 98.0, 1.0),
}
problems = []


def number(pattern, text):
    m = re.search(pattern, text)
    return float(m.group(1)) if m else None


for name, (serving, overall, loading) in LIMITS.items():
    trace = os.path.join(os.environ["TM_SRC"], "tests/data/traces", name + ".tmt.xz")
    done = subprocess.run([os.environ["TM_BUILD"] + "/tiermalloc", "replay", trace], capture_output=True, text=True)
    if done.returncode:
        problems.append(f"{name}: status {done.returncode}: {done.stderr}")
        continue
    have = (number(r"([\d.]+)% of those asked for after the first step", done.stdout),
            number(r"right tier +([\d.]+)% of bytes", done.stdout),
            number(r"asked for as loading after it: ([\d.]+)%", done.stdout),
            number(r"misplaced +([\d.]+)% of bytes", done.stdout))
    print(name, have)
    if None in have:
        problems.append(f"{name}: figures are missing in\n{done.stdout}")
    elif have[0] < serving or have[1] < overall or have[2] > loading or have[3] > MISPLACED:
        problems.append(f"{name}: {have}, wanted {(serving, overall, loading, MISPLACED)}")
    if "beyond the bound" in done.stdout:
        problems.append(f"{name}: more dead than max(2 MiB, live) in arenas\n{done.stdout}")
print("\n".join(problems))
sys.exit(bool(problems))
