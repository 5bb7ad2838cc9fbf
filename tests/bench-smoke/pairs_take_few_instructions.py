#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# needs: valgrind
"""Instructions of an allocation with its free, by callgrind, against the figures of ARCHITECTURE.md.

A tenth and three more are allowed, which another compiler, libc or processor may need. An unoptimised build is not judged.
"""
import os
import re
import subprocess
import sys

LOOP = 10  # of `pair` itself
OFF = {"TIERMALLOC_LEDGER": "off"}
MODES = (("on", {}), ("off", OFF), ("trust", dict(OFF, TIERMALLOC_ON_ERROR="trust")))
# kind, bytes, most with the account, without it, and without what wrong frees are known by; None: not promised
BOUNDS = (("pair", 32, 66, 50, 36), ("pair", 1536, 89, 69, 50), ("pair", 65536, 60, 48, 38),
          ("calloc", 32, 82, 65, None), ("realloc", 32, 155, 118, None), ("memalign", 256, 94, 74, None),
          ("remote", 32, 138, 124, 97), ("deep-calloc", 32, 165, None, None), ("deep-realloc", 32, 450, None, None))
SLACK, SLACK_SHARE = 3, .1
GRIND = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
         "--soname-synonyms=somalloc=nouserintercepts"]


def collected(words, extra):
    env = dict(os.environ, LD_PRELOAD=os.environ["TM_LIB"], **extra)
    done = subprocess.run(GRIND + words, env=env, capture_output=True, text=True, check=False)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not found:
        sys.exit("callgrind failed: " + done.stderr)
    return int(found[1])


def pair(kind, size, extra):
    short, long = (collected(["./pair", str(n), kind, str(size)], extra) for n in (20000, 60000))
    return (long - short) / 40000 - LOOP


def main():
    subprocess.run(["gcc", "-O2", "-I", os.environ["TM_SRC"] + "/tests/bench", "-o", "pair",
                    os.environ["TM_SRC"] + "/tests/bench/pair.c", "-lpthread"], check=True)
    if pair("pair", 32, {}) > 200:
        print("skipped: the library is not optimised")
        sys.exit(77)
    failed = 0
    for kind, size, *bounds in BOUNDS:
        for most, (mode, extra) in zip(bounds, MODES):
            if most is None:
                continue
            count = pair(kind, size, extra)
            print("%-8s %5d B %-5s: %.0f, at most %d" % (kind, size, mode, count, most))
            failed += count > most * (1 + SLACK_SHARE) + SLACK
    return failed != 0


sys.exit(main())
