#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which share of recorded engines' bytes do the policies put into the right tier?

Metric: `tiermalloc replay` over traces with marks of steps, of which the policies are not told: the
share of bytes above 1 KiB whose tier is what their life makes it, of those asked for after the first
step began (which is what shared learners are judged by, too), of those before it, of all; and the share
that lies in another place than it should. Refuted by less than 98 % while serving (llama.cpp 94).

usage: tiers.py [--steps] TIERMALLOC [TRACE ...]     default: tests/data/traces; prints Markdown
"""
import glob
import os
import re
import subprocess
import sys

from common import HERE, table

PATTERNS = (r"([\d.]+)% of those asked for after", r"([\d.]+)% of those before it", r"right tier +([\d.]+)% of bytes",
            r"misplaced +([\d.]+)% of bytes")


def row(command, trace):
    out = subprocess.run(command + [trace], capture_output=True, text=True, check=True).stdout
    figures = [re.search(p, out) for p in PATTERNS]
    mistaken = re.search(r"^mistaken *(.*)$", out, re.M)
    if mistaken is None:
        return [os.path.basename(trace)] + ["no steps"] + [""] * (len(PATTERNS))
    texts = re.findall(r"(\w+ as \w+ [\d.]+)%", mistaken.group(1))
    return [os.path.basename(trace).split(".")[0]] + [m.group(1) for m in figures] + ["; ".join(texts)]


def main(words):
    steps = [w for w in words if w == "--steps"]
    words = [w for w in words if w != "--steps"]
    if not words:
        sys.exit(__doc__)
    traces = words[1:] or sorted(glob.glob(HERE + "/../data/traces/*.tmt.xz"))
    table(["trace", "while serving, %", "before, %", "all, %", "misplaced, %", "mistaken, % of all bytes"],
          [row([words[0], "replay"] + steps, t) for t in traces])


main(sys.argv[1:])
