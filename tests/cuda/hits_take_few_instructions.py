#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# needs: valgrind
"""Instructions of the library in an allocation that a pool serves and in its free, by callgrind.

The driver's own are not counted; the clock costs a few more under callgrind than without. An unoptimised
build is not judged. A quarter more is allowed: other compilers need it.
"""
import os
import sys

import grind

PAIRS = 3000
# pool, when memory is free again, instructions of an allocation and of its free
USUAL = (("cache", "strict", 605, 784), ("slab", "strict", 535, 643), ("vmm", "strict", 623, 640),
         ("auto", "strict", 639, 791), ("cache", "event", 874, 766), ("slab", "event", 818, 677),
         ("vmm", "event", 847, 624))


def count(pool, sync, function):
    return grind.run([os.environ["TM_TESTS"] + "/hit_pairs", str(PAIRS)], collect=function, TIERMALLOC_CUDA="pool",
                     TIERMALLOC_CUDA_POOL=pool, TIERMALLOC_CUDA_FREE_SYNC=sync) / PAIRS


def main():
    grind.only_in_a_judged_build()
    failed = 0
    for pool, sync, *most in USUAL:
        counts = [count(pool, sync, name) for name in ("cuMemAlloc_v2", "cuMemFree_v2")]
        if counts[0] > 1200:
            print("skipped: the library is not optimised")
            sys.exit(77)
        print("%-5s %-6s allocation %.0f (%d), free %.0f (%d)" % (pool, sync, counts[0], most[0], counts[1], most[1]))
        failed += any(c > m * 1.25 for c, m in zip(counts, most))
    return failed != 0


sys.exit(main())
