#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tiny processes and many threads: what does being preloaded cost where nothing is to be won?

Metric: of `true`, system calls (strace), peak RSS, CPU of one run; CPU of a shell script that runs
1,000 of them; RSS and VmSize of 256 threads that hold a block each. Refuted by more than 40 system
calls or .15 ms over glibc, 1.4 MiB, 1.15 times glibc's CPU of the script, 8 MiB of the threads.

usage: small.py [-n REPEATS] NAME=PATH[,ENV=VALUE..] ...     prints Markdown
"""
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys

from common import HERE, Allocator, spread, table

TRUE = shutil.which("true")
SCRIPT = "i=0; while [ $i -lt 1000 ]; do %s; i=$((i + 1)); done" % TRUE


def calls(allocator):
    if not shutil.which("strace"):
        return "no strace"
    preload = ["-E", "LD_PRELOAD=" + allocator.path] if allocator.path else []
    done = subprocess.run(["strace", "-f", "-qq"] + preload + [TRUE], capture_output=True, text=True, check=False,
                          env=Allocator("x=").environment())
    return sum(1 for line in done.stderr.splitlines() if re.match(r"(\[pid +\d+\] )?\w+\(", line))


def usage(allocator, command):
    """(CPU in ms with children, peak RSS in MiB) of one run."""
    env = allocator.environment()
    path = env.pop("LD_PRELOAD", "")
    env["LAUNCH_PRELOAD"] = path
    result = "/tmp/launch.%d" % os.getpid()
    subprocess.run([HERE + "/launch", result] + command, env=env, check=True)
    with open(result, encoding="ascii") as f:
        _, _, user, system, rss, _, _ = f.read().split()
    os.remove(result)
    return 1000 * (float(user) + float(system)), int(rss) / 1024


def script_cpu(allocator):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    allocator.run(["sh", "-c", SCRIPT])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def threads(allocator):
    out = allocator.run([HERE + "/threads", "256", "100"]).stdout
    return ["%.1f" % (int(n) / 1024) for n in re.findall(r"(?:rss|size)_kib=(\d+)", out)][::-1] or ["failed"] * 2


def main(words):
    repeats = 5
    if words[:1] == ["-n"]:
        repeats, words = int(words[1]), words[2:]
    if not words:
        sys.exit(__doc__)
    allocators = [Allocator(w) for w in words]
    scripts = {a.name: [] for a in allocators}
    alone = {a.name: [] for a in allocators}
    for turn in range(repeats):
        k = turn % len(allocators)
        for a in allocators[k:] + allocators[:k]:
            scripts[a.name].append(script_cpu(a))
            alone[a.name] += [usage(a, [TRUE]) for _ in range(20)]
    base = statistics.median(scripts[allocators[0].name])
    rows = []
    for a in allocators:
        rss, size = threads(a)
        rows.append([a.name, calls(a), "%.2f" % statistics.median(r for _, r in alone[a.name]),
                     "%.2f" % statistics.median(ms for ms, _ in alone[a.name]),
                     spread([s / base for s in scripts[a.name]]), rss, size])
    table(["`true`", "system calls", "peak RSS MiB", "CPU ms", "1,000 in a script, CPU to " + allocators[0].name,
           "256 threads, RSS MiB", "VmSize MiB"], rows)


main(sys.argv[1:])
