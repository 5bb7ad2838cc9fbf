#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The patterns of run.py as a table: CPU, peak RSS and page faults as ratios to the first allocator.

usage: ratios.py [-n REPEATS] NAME=PATH[,ENV=VALUE..] ...     prints Markdown
"""
import collections
import json
import os
import statistics
import subprocess
import sys
import tempfile

from common import HERE, Allocator, spread, table

OWN = ("best_step_ms", "minflt_per_step", "end_rss_mb", "frag_mean", "frag_end", "rss90_2s_mb", "live90_mb", "ns_per_pair_cpu")
ONLY = "tensor-memset,tensor-touch,tensor-stack,tensor-idle,kv16,session,storm1,storm2,shlike1,burst"


def main(words):
    repeats = "5"
    if words[:1] == ["-n"]:
        repeats, words = words[1], words[2:]
    if not words:
        sys.exit(__doc__)
    got = collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as work:
        rows = os.path.join(work, "rows")
        subprocess.run([HERE + "/run.py", "-n", repeats, "-s", ONLY, "-o", rows] + words, check=True,
                       stdout=subprocess.DEVNULL)
        with open(rows, encoding="ascii") as f:
            for row in map(json.loads, f):
                got[row["bench"], row["alloc"]].append(row)
    names = [Allocator(w).name for w in words]
    for bench in dict.fromkeys(b for b, _ in got):
        def mid(name, key):
            return statistics.median(r[key] for r in got[bench, name])
        lines = []
        for name in names:
            runs = got[bench, name]
            if any(r["rc"] for r in runs):
                lines.append([name, "failed", "", "", ""])
                continue
            own = ", ".join("%s %.3g" % (k, mid(name, k)) for k in runs[0]
                            if k in OWN)
            lines.append([name, spread([r["cpu_s"] / mid(names[0], "cpu_s") for r in runs]),
                          "%.2f" % (mid(name, "rss_mb") / mid(names[0], "rss_mb")),
                          "%.3f" % (mid(name, "faults") / mid(names[0], "faults")), own])
        print("\n### " + bench)
        table(["allocator", "CPU", "peak RSS", "faults", "its own figures"], lines)


main(sys.argv[1:])
