#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Instructions of an allocation with its free, counted by callgrind: exact, and the same on a busy machine.

Question: what does a pair cost in the allocator itself? Metric: the difference of two run lengths of
`pair`, less the 10 instructions of its loop, calls and jumps. Refuted where a pair of 32 bytes takes
more than 66, one of 64 KiB more than 60, or calloc and realloc more than the best of the others.

usage: counts.py NAME=PATH[,ENV=VALUE..] ...     prints Markdown
"""
import re
import sys

from common import HERE, Allocator, table

KINDS = (("pair", 32, "malloc, free 32 B"), ("pair", 1536, "malloc, free 1.5 KiB"),
         ("pair", 65536, "malloc, free 64 KiB"), ("batch1000", 32, "1,000 of 32 B at a time"),
         ("mixed", 0, "mixed sizes to 1 KiB"), ("calloc", 32, "calloc 32 B"), ("calloc", 4096, "calloc 4 KiB"),
         ("realloc", 32, "realloc 32 to 64 B"), ("memalign", 256, "posix_memalign 256 B"),
         ("remote", 32, "freed by another thread, 32 B"))
LOOP = 10
GRIND = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
         "--soname-synonyms=somalloc=nouserintercepts"]


def count(allocator, kind, size, pairs):
    done = allocator.run(GRIND + [HERE + "/pair", str(pairs), kind, str(size)])
    found = re.search(r"Collected : (\d+)", done.stderr)
    return int(found[1]) if done.returncode == 0 and found else None


def net(allocator, kind, size):
    short, long = (count(allocator, kind, size, n) for n in (20000, 60000))
    return "failed" if short is None or long is None else "%.0f" % ((long - short) / 40000 - LOOP)


def main(words):
    if not words:
        sys.exit(__doc__)
    allocators = [Allocator(w) for w in words]
    table(["instructions"] + [a.name for a in allocators],
          [[text] + [net(a, kind, size) for a in allocators] for kind, size, text in KINDS])


main(sys.argv[1:])
