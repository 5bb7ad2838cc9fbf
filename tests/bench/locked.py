#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Locked instructions of a pair whose block is freed by another thread.

Question: how often do threads that hand objects to each other wait for a cache line of each other?
Metric: executions of instructions with a lock prefix, and of xchg with memory, in the allocator
(callgrind counts every instruction by its address, objdump says which these are), as the difference of
two run lengths of request_storm, per remote pair. Refuted by more than .1.

usage: locked.py NAME=PATH ...     prints Markdown
"""
import collections
import os
import re
import subprocess
import sys
import tempfile

from common import HERE, Allocator, table

RUNS = ((2, 4000, 50), (16, 1500, 50), (16, 1500, 100), (64, 1000, 100))
BATCH = 64


def locked(path):
    out = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], capture_output=True, text=True, check=True)
    found = re.finditer(r"^\s*([0-9a-f]+):\s+(lock |xchg .*\()", out.stdout, re.M)
    return {int(m[1], 16) for m in found}


def count(allocator, threads, batches, percent):
    """Executions by address, in the allocator's own file."""
    with tempfile.NamedTemporaryFile() as f:
        allocator.run(["valgrind", "--tool=callgrind", "--dump-instr=yes", "--compress-pos=no", "--compress-strings=no",
                       "--soname-synonyms=somalloc=nouserintercepts", "--callgrind-out-file=" + f.name,
                       HERE + "/request_storm", str(threads), str(batches), str(percent)])
        total, inside, call = collections.Counter(), False, False
        with open(f.name, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith("ob="):
                    inside = os.path.realpath(line[3:].strip()) == os.path.realpath(allocator.path)
                elif line.startswith("calls="):
                    call = True
                elif line.startswith("0x"):
                    if inside and not call:
                        words = line.split()
                        total[int(words[0], 16)] += int(words[-1])
                    call = False
    return total


def per_pair(allocator, threads, batches, percent):
    short, long = (count(allocator, threads, n, percent) for n in (batches, 2 * batches))
    more = sum(long[at] - short[at] for at in locked(os.path.realpath(allocator.path)))
    return "%.3f" % (more / (batches * BATCH * threads * percent / 100))


def main(words):
    if not words:
        sys.exit(__doc__)
    allocators = [a for a in map(Allocator, words) if a.path]
    table(["threads, share freed by others"] + [a.name for a in allocators],
          [["%d, %d %%" % (threads, percent)] + [per_pair(a, threads, n, percent) for a in allocators]
           for threads, n, percent in RUNS])


main(sys.argv[1:])
