#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# needs: valgrind
"""Instructions of the library in an allocation that a pool serves and in its free, by callgrind.

The driver's own are not counted; the clock costs a few more under callgrind than without. An unoptimised
build is not judged. Another release of the compiler may need a tenth more.
"""
import os
import re
import subprocess
import sys

PAIRS = 3000
# pool, when memory is free again, most in an allocation, most in its free
BOUNDS = (("cache", "strict", 606, 772), ("slab", "strict", 534, 576), ("vmm", "strict", 628, 590),
          ("auto", "strict", 649, 780), ("cache", "event", 889, 751), ("slab", "event", 876, 555),
          ("vmm", "event", 797, 568))


def of_the_library(path):
    """Own cost of what lies in the library, from callgrind's file."""
    total, names, ours, skip = 0, {}, False, False
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            found = re.match(r"ob=\((\d+)\)(?: (.*))?$", line)
            if found:
                names.setdefault(found[1], found[2])
                ours = "libtiermalloc" in (names[found[1]] or "")
            elif line.startswith("cob="):
                found = re.match(r"cob=\((\d+)\)(?: (.*))?$", line)
                names.setdefault(found[1], found[2])
            elif line.startswith("calls="):
                skip = True
            elif re.match(r"[+\-*\d]", line):
                total += int(line.split()[1]) if ours and not skip else 0
                skip = False
    return total


def count(pool, sync, function):
    env = dict(os.environ, LD_PRELOAD=os.environ["TM_LIB"], TIERMALLOC_CUDA="pool", TIERMALLOC_CUDA_POOL=pool,
               TIERMALLOC_CUDA_FREE_SYNC=sync)
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=out", "--toggle-collect=" + function,
                           "--soname-synonyms=somalloc=nouserintercepts",
                           os.environ["TM_TESTS"] + "/hit_pairs", str(PAIRS)],
                          env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit("callgrind failed: " + done.stdout + done.stderr)
    return of_the_library("out") / PAIRS


def main():
    with open(os.environ["TM_BUILD"] + "/config.h", encoding="utf-8") as f:
        if not re.search(r"#define TM_HAVE_CUDA 1", f.read()):
            print("skipped: built without the CUDA hooks")
            sys.exit(77)
    failed = 0
    for pool, sync, *most in BOUNDS:
        counts = [count(pool, sync, name) for name in ("cuMemAlloc_v2", "cuMemFree_v2")]
        if counts[0] > 1200:
            print("skipped: the library is not optimised")
            sys.exit(77)
        print("%-5s %-6s allocation %.0f, at most %d; free %.0f, at most %d" %
              (pool, sync, counts[0], most[0], counts[1], most[1]))
        failed += any(c > m * 1.1 for c, m in zip(counts, most))
    return failed != 0


sys.exit(main())
