#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How many bytes do a running program's arenas hold beyond what lives in them?

Metric: the program is stopped every so often and the blocks of 64 KiB of its arenas are read from its
memory (the library needs its symbols): the bytes of those of the temporary tier less what the entries
say is in use, asked-for bytes. Refuted by a look at which they are more than 2 MiB and than what lives.

usage: dead.py [-i SECONDS] LIBRARY -- COMMAND ...
"""
import os
import signal
import struct
import subprocess
import sys
import time

GRANULE, LINES, ARENA_CLASS, TEMPORARY, FREE = 65536, 256, 113, 3, 0xffff
SLACK = 2 << 20


class Target:
    """A running process with the library: its page map and what it refers to."""

    def __init__(self, pid, path):
        symbols = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
        offset = next(int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(" tm_zone"))
        with open("/proc/%d/maps" % pid, encoding="utf-8") as f:
            base = next(int(line.split("-")[0], 16) for line in f if line.rstrip().endswith(os.path.realpath(path)))
        self.memory = open("/proc/%d/mem" % pid, "rb", 0)
        self.zone = base + offset

    def read(self, at, size):
        self.memory.seek(at)
        return self.memory.read(size)

    def arenas(self):
        """(blocks, bytes in use in them) of the temporary tier."""
        _, length, granules = struct.unpack("QQQ", self.read(self.zone, 24))
        raw = self.read(granules, length // GRANULE * 64)
        blocks = live = 0
        for at in range(0, len(raw), 64):
            owner, kind, klass, side = struct.unpack_from("<Q6xBBQ", raw, at)
            parked, = struct.unpack_from("<Q", raw, at + 48)
            if owner <= 7 or klass != ARENA_CLASS or kind >> 4 != TEMPORARY or parked == 0:
                continue
            starts = self.read(parked + 66, LINES)
            entries = struct.unpack("<%dQ" % LINES, self.read(side, LINES * 8))
            blocks += 1
            live += sum(e >> 24 for e, klass in zip(entries, starts) if klass and e & FREE != FREE)
        return blocks, live


def watch(path, command, interval):
    environment = dict(os.environ, LD_PRELOAD=os.path.abspath(path))
    child = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    looks, worst, most, target = 0, (-1 << 40, 0, 0), 0, None
    while child.poll() is None:
        time.sleep(interval)
        try:
            child.send_signal(signal.SIGSTOP)
            target = target or Target(child.pid, path)
            blocks, live = target.arenas()
            looks += 1
            dead = blocks * GRANULE - live
            most = max(most, blocks * GRANULE)
            worst = max(worst, (dead - max(SLACK, live), dead, live))
        except (OSError, StopIteration, struct.error):
            pass
        finally:
            child.send_signal(signal.SIGCONT)
    return looks, worst, most, child.returncode


def main(words):
    interval = .05
    if words[:1] == ["-i"]:
        interval, words = float(words[1]), words[2:]
    if "--" not in words or len(words) < 3:
        sys.exit(__doc__)
    looks, worst, most, status = watch(words[0], words[words.index("--") + 1:], interval)
    print("%d looks, arenas held at most %.2f MiB; worst look: %.2f MiB dead beside %.2f live%s" % (
        looks, most / 2**20, worst[1] / 2**20, worst[2] / 2**20, "" if worst[0] <= 0 else ", TOO MANY"))
    return status


sys.exit(main(sys.argv[1:]))
