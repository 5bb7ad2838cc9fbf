#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# needs: heaptrack heaptrack_print c++
"""The planted-leak program: what is live at its end equals heaptrack's figure to the byte, for each of
the program's functions that holds something. It costs a tenth of heaptrack's processor time or less
(the book's section leaks has the figure), here at most a third, since other work may go on meanwhile."""
import json
import os
import re
import resource
import subprocess
import sys

TOOL = os.environ["TM_BUILD"] + "/tiermalloc"
ARGUMENTS = ["1", "500", "120"]
# Not main: what it is given is a thread's block, which the loader allocates in both accounts.
FUNCTIONS = ("leak_meta", "grow_cache", "load_weights", "tokenise", "decode_step", "run_session")


def cpu(command, **env):
    """Seconds of processor, of all its processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=dict(os.environ, **env), check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def add(sums, names, size):
    """To the innermost of the program's functions; what has none is the C and C++ library's own."""
    for name in names:
        word = re.match(r"(?:.* )?(\w+)(?:\(|<|$)", name)
        if word and word.group(1) in FUNCTIONS:
            sums[word.group(1)] = sums.get(word.group(1), 0) + size
            return
    sums["other"] = sums.get("other", 0) + size


subprocess.run(["c++", "-std=c++17", "-O2", "-g", "-pthread", "-o", "infer",
                os.environ["TM_SRC"] + "/tests/bench/infer.cpp"], check=True)
theirs_cpu = cpu(["heaptrack", "-o", "trace", "./infer"] + ARGUMENTS)
trace = [f for f in os.listdir(".") if f.startswith("trace.")][0]
subprocess.run(["heaptrack_print", "-f", trace, "--flamegraph-cost-type", "leaked", "-F", "leaked.txt"], check=True,
               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
theirs = {}
for line in open("leaked.txt", encoding="utf-8"):
    stack, size = line.rstrip().rsplit(" ", 1)
    add(theirs, reversed(stack.split(";")), int(size))
ours_cpu = min(cpu(["./infer"] + ARGUMENTS, LD_PRELOAD=os.environ["TM_LIB"],
                   TIERMALLOC_DIR="%s/ledger%d" % (os.getcwd(), n)) for n in range(3))
ledger = [os.path.join("ledger0", f) for f in os.listdir("ledger0")][0]
document = json.loads(subprocess.run([TOOL, "report", "--json", ledger], check=True, capture_output=True,
                                     text=True).stdout)
ours = {}
for site in document["sites"]:
    if site["live_bytes"]:
        frames = [document["frames"][f] for f in document["stacks"][site["stack"]]["frames"]] \
            if site["stack"] is not None else []
        add(ours, [(f["fn"] or "?").split("(")[0] for f in frames], site["live_bytes"])
theirs = {k: v for k, v in theirs.items() if v}
print("heaptrack  %.2f s of processor, %s" % (theirs_cpu, theirs))
print("tiermalloc %.2f s of processor, %s" % (ours_cpu, ours))
print("heaptrack takes %.1f times as much" % (theirs_cpu / ours_cpu))
for functions in (ours, theirs):
    functions.pop("other", None)
sys.exit(ours != theirs or not ours or theirs_cpu < 3 * ours_cpu)
