#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Stacks are captured through libraries whose unwinding tables are damaged, at random and on purpose, without a
crash or a hang, in signal handlers too."""
import os
import random
import struct
import subprocess
import sys

SEED, COUNT = 11, 240
data = open(os.environ["TM_TESTS"] + "/libdamage_guest.so", "rb").read()


def sections(elf):
    """Name: (offset, length)."""
    at, = struct.unpack_from("<Q", elf, 40)
    size, count, names = struct.unpack_from("<HHH", elf, 58)
    table = [struct.unpack_from("<IIQQQQ", elf, at + i * size) for i in range(count)]
    text = table[names][4]
    return {elf[text + t[0]:elf.index(b"\0", text + t[0])].decode(): (t[4], t[5]) for t in table}


def damage(elf, at, size, roll):
    how = roll.random()
    if how < .35:
        for _ in range(roll.randint(1, 6)):
            elf[at + roll.randrange(size)] = roll.randrange(256)
    elif how < .5:
        elf[at:at + size] = bytes(roll.randrange(256) for _ in range(size))
    elif how < .6:
        elf[at:at + size] = roll.choice((b"\0", b"\xff", b"\x80")) * size
    elif how < .85:
        # lengths, counts, distances
        k = roll.randrange(size - 4) & ~3
        elf[at + k:at + k + 4] = struct.pack("<I", roll.choice((0xffffffff, 0x7fffffff, 0x80000000, 1 << 24, 0xfffffff0)))


where = sections(data)
os.mkdir("bad")
names = []
for i in range(COUNT):
    roll, elf = random.Random("%d %d" % (SEED, i)), bytearray(data)
    for name in (".eh_frame", ".eh_frame_hdr"):
        damage(elf, *where[name], roll)
    names.append("bad/lib%d.so" % i)
    open(names[-1], "wb").write(elf)
    os.chmod(names[-1], 0o755)


def run(mode, libraries):
    env = dict(os.environ, LD_PRELOAD=os.environ["TM_LIB"], TIERMALLOC_LEDGER=mode, TIERMALLOC_DIR=os.getcwd() + "/" + mode)
    return subprocess.run([os.environ["TM_TESTS"] + "/damage_subject"] + ["./" + n for n in libraries], env=env,
                          capture_output=True, text=True)


for mode in ("on", "deep"):
    done = run(mode, names)
    if done.returncode or done.stdout != "done\n":
        one = [n for n in names if run(mode, [n]).returncode]
        sys.exit("%s: status %d %s; alone: %s" % (mode, done.returncode, done.stderr[-300:], one[:5]))
