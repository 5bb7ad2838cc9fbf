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
USUAL = (("cache", "strict", 606, 772), ("slab", "strict", 534, 576), ("vmm", "strict", 648, 595),
         ("auto", "strict", 649, 780), ("cache", "event", 889, 751), ("slab", "event", 876, 555),
         ("vmm", "event", 814, 574))


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
