#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 3600
"""Ledgers with flipped bytes, cut short, or made of noise: the command ends with 0, 2, 3 or 4, soon,
never by a signal; with 2 it says in one line what is wrong, naming the file."""
import os
import random
import subprocess
import sys

TOOL = os.environ["TM_BUILD"] + "/tiermalloc"
MAKE = os.environ["TM_BUILD"] + "/tests/tools/make_ledger"
ROUNDS = 2000 if os.environ.get("TM_LONG") else 40
SITES = 300
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
# What the writer of the format wrote to: offset, bytes.
AREAS = [(8, 600), (4 * KIB, 2 * KIB), (8 * KIB, 4 * KIB), (16 * KIB, 16 * KIB), (32 * KIB, KIB), (64 * KIB, KIB),
         (576 * KIB, 4 * KIB), (640 * KIB, 4 * KIB), (896 * KIB, 4 * KIB), (MIB, 1024), (2 * MIB, SITES * 32),
         (3 * MIB, 4 * KIB), (4 * MIB, 4 * KIB), (6 * MIB, SITES * 64), (8 * MIB, 64 * KIB), (GIB, SITES * 32),
         (2 * GIB, 2 * KIB), (4 * GIB, 16 * KIB), (8 * GIB, 4 * KIB)]
random.seed(int(os.environ.get("SEED", "11")))
problems = []
ends = {}


def check(what, path):
    verb = random.choice(("report", "leaks", "frag", "symbols", "report --json", "export --format pprof -o out.pb"))
    try:
        done = subprocess.run([TOOL] + verb.split() + [path], capture_output=True, timeout=300, check=False)
    except subprocess.TimeoutExpired:
        problems.append(f"{what}: {verb} does not end")
        return
    ends[done.returncode] = ends.get(done.returncode, 0) + 1
    err = done.stderr.decode("utf-8", "replace")
    if done.returncode not in (0, 2, 3, 4):
        problems.append(f"{what}: {verb} ends with {done.returncode}: {err}")
    elif done.returncode == 2 and (err.count("\n") != 1 or path not in err):
        problems.append(f"{what}: {verb} says '{err}'")


def mutate(n):
    with open("bad.tm", "r+b") as f:
        size = f.seek(0, 2)
        for _ in range(random.choice((1, 3, 30, 300))):
            at, length = random.choice(AREAS)
            f.seek(min(at + random.randrange(length), size - 16))
            f.write(random.choice((bytes([random.randrange(256)]), b"\xff" * 8, b"\0" * 8,
                                   random.randbytes(random.randrange(1, 16)))))
    check("round %d" % n, "bad.tm")


subprocess.run([MAKE, "good.tm", str(SITES)], check=True)
for n in range(ROUNDS):
    subprocess.run(["cp", "--sparse=always", "good.tm", "bad.tm"], check=True)
    mutate(n)
for cut in (0, 1, 7, 8, 100, 599, 4096, MIB, 3 * GIB, 9 * GIB - 1):
    subprocess.run(["cp", "--sparse=always", "good.tm", "bad.tm"], check=True)
    os.truncate("bad.tm", cut)
    check("cut at %d" % cut, "bad.tm")
for n in range(10):
    with open("bad.tm", "wb") as f:
        f.write(random.randbytes(random.randrange(1, 200000)))
    check("noise %d" % n, "bad.tm")
# A true head before noise of full length.
with open("good.tm", "rb") as f:
    head = f.read(8 + 4)
for n in range(5):
    with open("bad.tm", "wb") as f:
        f.write(head + random.randbytes(300000))
        f.truncate(os.stat("good.tm").st_size)
    check("noise behind a head %d" % n, "bad.tm")
print("ends", dict(sorted(ends.items())))
if len(ends) < 2:
    problems.append("nothing was refused, or everything")
print("\n".join(problems[:20]))
sys.exit(bool(problems))
