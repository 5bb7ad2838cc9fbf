#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# needs: valgrind
"""H49, log 24: a fork beside 100 threads that all have caches costs few instructions, in the parent and in the
child: the number of locks to take does not grow with the threads.
Failure: with a lock or two for each size class of each thread the parent takes ten times the bound."""
import os
import re
import subprocess
import sys

PARENT, CHILD = 30000, 2000000
SUBJECT = os.environ["TM_TESTS"] + "/fork_subject"


def count(threads, forks):
    """Instructions of fork() in the parent, in all its forks, and in the child that took most."""
    env = dict(os.environ, LD_PRELOAD=os.environ["TM_LIB"])
    run = subprocess.Popen(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=fork",
                            "--soname-synonyms=somalloc=nouserintercepts", SUBJECT, str(threads), str(forks)],
                           env=env, stderr=subprocess.PIPE, text=True)
    said = run.communicate()[1]
    found = {int(pid): int(n) for pid, n in re.findall(r"==(\d+)== Collected : (\d+)", said)}
    if run.returncode != 0 or len(found) != forks + 1:
        sys.exit("callgrind failed: " + said)
    parent = found.pop(run.pid)
    return parent, max(found.values())


first, child = count(100, 1)
parent = (count(100, 11)[0] - first) / 10
print("instructions of a fork beside 100 threads: %d in the parent, at most %d; %d in the child, at most %d" % (
    parent, PARENT, child - first, CHILD))
sys.exit(parent > PARENT or child - first > CHILD)
