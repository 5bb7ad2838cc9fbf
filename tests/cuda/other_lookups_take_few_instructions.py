#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# needs: valgrind
"""Instructions that the library adds to dlsym and dlopen of names that are none of its own, by callgrind.

60 ns are allowed, which are some 400 instructions and more on any processor that a GPU is in. An unoptimised
build is not judged. other_lookups_allocate_nothing: what its name says.
"""
import os
import sys

import grind

BOUNDS = (("handle", 400), ("default", 70), ("next", 400), ("prefix", 520), ("open", 30))


def main():
    grind.only_in_a_judged_build()
    failed = 0
    for kind, most in BOUNDS:
        short, long = (grind.run([os.environ["TM_TESTS"] + "/lookups", kind, str(n)]) for n in (1000, 3000))
        count = (long - short) / 2000
        if count > 700:
            print("skipped: the library is not optimised")
            sys.exit(77)
        print("%-7s %.0f, at most %d" % (kind, count, most))
        failed += count > most
    return failed != 0


sys.exit(main())
