#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Large blocks: is there anything left to save where tensors come and go, and where buffers grow?

Steps (tensor_churn touch): page faults per step after the fifth; system calls per step, as the
difference of a run of 40 and one of 20 steps (strace). Refuted by anything but 0.
Pauses (tensor_idle): CPU of a step and what is resident in a pause of 1.5 s, beside the same bytes
written and given back without any allocator (idle_floor). Refuted by more CPU than those take.
Growth (kv_growth): CPU of 48 buffers that grow to 16 MiB by 256 KiB, beside the same bytes written
without any allocator (kv_floor): what the kernel asks for them. Each is run twice, and the second
counts: huge pages made of what others used as small ones cost a virtual machine four times as much.

usage: large.py [-n REPEATS] NAME=PATH[,ENV=VALUE..] ...     prints Markdown
"""
import re
import shutil
import statistics
import subprocess
import sys

from common import HERE, Allocator, table

FLOORS = (("no allocator, 2 MiB pages", "huge"), ("no allocator, 4 KiB pages", "plain"),
          ("no allocator, 4 KiB pages by 256 KiB", "populate"))


def figures(text):
    return {k: float(v) for k, v in re.findall(r"(\w+)=([\d.]+)", text)}


def calls(allocator, steps):
    preload = ["-E", "LD_PRELOAD=" + allocator.path] if allocator.path else []
    extra = [w for k, v in allocator.extra.items() for w in ("-E", k + "=" + v)]
    done = subprocess.run(["strace", "-f", "-qq"] + preload + extra + [HERE + "/tensor_churn", str(steps), "touch", "64"],
                          capture_output=True, text=True, check=False, env=Allocator("x=").environment())
    return sum(1 for line in done.stderr.splitlines() if re.match(r"(\[pid +\d+\] )?\w+\(", line))


def steps(allocators, repeats):
    rows = []
    for a in allocators:
        runs = [figures(a.run([HERE + "/tensor_churn", "40", "touch", "64"]).stdout) for _ in range(repeats)]
        per_step = "no strace"
        if shutil.which("strace"):
            per_step = "%.1f" % (max(0, calls(a, 40) - calls(a, 20)) / 20)
        rows.append([a.name, "%.1f" % statistics.median(r["minflt_per_step"] for r in runs),
                     "%.1f" % statistics.median(r["late_minflt_per_step"] for r in runs), per_step,
                     "%.0f" % statistics.median(r["peak_rss_mb"] for r in runs)])
    print("\nTensor churn, one write a page, 209 MiB a step.\n")
    table(["allocator", "faults a step, all 40", "after the fifth", "system calls a step", "peak RSS MiB"], rows)


def pauses(allocators, repeats):
    who = [(a.name, a, [HERE + "/tensor_idle", "6", "memset", "64"]) for a in allocators]
    who.append(("no allocator, a tenth kept", Allocator("x="), [HERE + "/idle_floor", "6", "1500", "10"]))
    runs = {name: [] for name, _, _ in who}
    for turn in range(repeats):
        k = turn % len(who)
        for name, a, command in who[k:] + who[:k]:
            a.extra["IDLE_MS"] = "1500"
            got = figures(a.run(command).stdout)
            runs[name].append((got.get("cpu_ms", got.get("user_ms", 0) + got.get("sys_ms", 0)), got["end_rss_mb"]))
            del a.extra["IDLE_MS"]
    print("\nThe same, every byte written, with 1.5 s pauses.\n")
    table(["run", "CPU ms a step, least run", "median", "resident in the pause, MiB"],
          [[name, "%.0f" % min(c for c, _ in r), "%.0f" % statistics.median(c for c, _ in r),
            "%.1f" % statistics.median(m for _, m in r)] for name, r in runs.items()])


def growth(allocators, repeats):
    who = [(a.name, a, [HERE + "/kv_growth", "16"]) for a in allocators]
    who += [(name, Allocator("x="), [HERE + "/kv_floor", "16", how]) for name, how in FLOORS]
    runs = {name: [] for name, _, _ in who}
    for turn in range(repeats):
        k = turn % len(who)
        for name, a, command in who[k:] + who[:k]:
            a.run(command)
            runs[name].append(figures(a.run(command).stdout))

    def cpu(name, how):
        return how(r["user_s"] + r["sys_s"] for r in runs[name])
    first = who[0][0]
    print("\n48 buffers to 16 MiB by 256 KiB; CPU to %s.\n" % first)
    table(["run", "CPU, least", "median", "of it user, least ms", "kernel, least ms", "faults"],
          [[name, "%.2f" % (cpu(name, min) / cpu(first, min)),
            "%.2f" % (cpu(name, statistics.median) / cpu(first, statistics.median)),
            "%.0f" % (1e3 * min(r["user_s"] for r in runs[name])), "%.0f" % (1e3 * min(r["sys_s"] for r in runs[name])),
            "%.0f" % statistics.median(r["minflt"] for r in runs[name])] for name, _, _ in who])


def main(words):
    repeats = 10
    if words[:1] == ["-n"]:
        repeats, words = int(words[1]), words[2:]
    if not words:
        sys.exit(__doc__)
    allocators = [Allocator(w) for w in words]
    steps(allocators, repeats)
    pauses(allocators, min(repeats, 3))
    growth(allocators, max(repeats, 10))


main(sys.argv[1:])
