#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which share of what a program's blocks hold in memory stands on huge pages, by tier?

Metric: the program is stopped every so often, its page map is read from its memory (the library
needs its symbols), and the kernel is asked which pages are there and which of them are huge
(PAGEMAP_SCAN, Linux 6.7). Counted are pages of live blocks, by the tier that the library gave each,
summed over all looks from the second on; blocks of 2 MiB and more also apart from the others. Refuted
by less than 99 % (persistent), 95 % (session), 90 % (temporary) of the blocks above 64 KiB.

usage: coverage.py [-i SECONDS] NAME=PATH,.. -- COMMAND ...   or, for the book, allocators alone:
the last of them, on programs of this folder and on the runner
"""
import collections
import ctypes
import fcntl
import os
import re
import signal
import struct
import subprocess
import sys
import time

from common import HERE, Allocator, table

GRANULE, PAGE, UNIT = 65536, 4096, 2 << 20
PAGEMAP_SCAN, PRESENT, HUGE = 0xC0606610, 8, 64
TIERS = ("?", "persistent", "session", "temporary")
OWNER_LARGE = 2


class Target:
    """A running process with the library: its page map, and its resident pages."""

    def __init__(self, pid, path):
        self.pid, self.zone = pid, None
        symbols = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
        self.offset = next(int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(" tm_zone"))
        self.path = os.path.realpath(path)
        self.memory = open("/proc/%d/mem" % pid, "rb", 0)
        self.pagemap = open("/proc/%d/pagemap" % pid, "rb", 0)

    def read(self, at, size):
        self.memory.seek(at)
        return self.memory.read(size)

    def find(self):
        with open("/proc/%d/maps" % self.pid, encoding="utf-8") as f:
            base = next((int(line.split("-")[0], 16) for line in f if line.rstrip().endswith(self.path)), None)
        if base is not None:
            self.zone = struct.unpack("QQQQQ", self.read(base + self.offset, 40))
        return base is not None and self.zone[0] != 0

    def regions(self):
        """(start, end, is huge) of what is in memory, in the order of addresses."""
        base, length = self.zone[:2]
        room = (ctypes.c_uint64 * 3 * 65536)()
        at = base
        while at < base + length:
            argument = bytearray(struct.pack("QQQQQQQQQQQQ", 96, 0, at, base + length, 0, ctypes.addressof(room), 65536,
                                             0, 0, PRESENT, 0, PRESENT | HUGE))
            count = fcntl.ioctl(self.pagemap, PAGEMAP_SCAN, argument)
            for i in range(count):
                yield room[i][0] - base, room[i][1] - base, bool(room[i][2] & HUGE)
            end = struct.unpack_from("Q", argument, 32)[0]
            if end <= at:
                return
            at = end

    def blocks(self):
        """(offset, bytes, tier, length) of live blocks and spans."""
        base, length, granules = self.zone[:3]
        raw = self.read(granules, length // GRANULE * 64)
        i, n = 0, length // GRANULE
        while i < n:
            owner, kind = struct.unpack_from("<Q6xB", raw, 64 * i)
            tier = kind >> 4
            if owner == OWNER_LARGE:
                page, pages = struct.unpack_from("<I4xQ", raw, 64 * i + 24)
                yield page * PAGE, pages * PAGE, tier, pages * PAGE
            elif owner:
                yield i * GRANULE, GRANULE, tier, 0
            i += 1


def look(target, total):
    _, length = target.zone[0], struct.unpack("Q", target.read(*where_length(target)))[0]
    target.zone = target.zone[:1] + (length,) + target.zone[2:]
    regions = list(target.regions())
    at = 0
    for start, size, tier, long in sorted(target.blocks()):
        while at > 0 and regions[at - 1][1] > start:
            at -= 1
        while at < len(regions) and regions[at][1] <= start:
            at += 1
        kind = "2 MiB and more" if long >= UNIT else "above 64 KiB" if long else "slots"
        k = at
        while k < len(regions) and regions[k][0] < start + size:
            part = min(regions[k][1], start + size) - max(regions[k][0], start)
            total[tier, kind][regions[k][2]] += part
            k += 1


def where_length(target):
    with open("/proc/%d/maps" % target.pid, encoding="utf-8") as f:
        base = next(int(line.split("-")[0], 16) for line in f if line.rstrip().endswith(target.path))
    return base + target.offset + 8, 8


def watch(allocator, command, interval):
    """{(tier, kind): [bytes on small pages, on huge ones]}, and the number of looks."""
    total = collections.defaultdict(lambda: [0, 0])
    child = subprocess.Popen(command, env=allocator.environment(), stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    looks, target = 0, None
    while child.poll() is None:
        time.sleep(interval)
        try:
            child.send_signal(signal.SIGSTOP)
            target = target or Target(child.pid, allocator.path)
            if target.zone or target.find():
                looks += 1
                if looks > 1:
                    look(target, total)
        except (OSError, StopIteration, struct.error):
            pass
        finally:
            child.send_signal(signal.SIGCONT)
    return total, looks


def share(small, huge):
    return "%.1f of %s" % (100 * huge / (small + huge), size(small + huge)) if small + huge else ""


def size(n):
    return "%.0f MiB" % (n / (1 << 20))


def row(name, total, looks):
    cells = []
    for tier in (1, 2, 3):
        blocks = [sum(total[tier, kind][i] for kind in ("2 MiB and more", "above 64 KiB")) / max(1, looks - 1)
                  for i in (0, 1)]
        cells.append(share(*blocks))
    cells.append(share(*[sum(v[i] for (_, kind), v in total.items() if kind == "slots") / max(1, looks - 1)
                         for i in (0, 1)]))
    return [name] + cells + [looks]


def programs():
    runner = os.path.join(os.environ.get("TM_BUILD", "."), "yi-coder-run")
    yield "tensor_churn", [HERE + "/tensor_churn", "400", "memset", "64"]
    yield "kv_growth", [HERE + "/kv_growth", "64"]
    yield "session_churn", [HERE + "/session_churn", "6000", "64", "2", "200", "40"]
    model = os.environ.get("TM_MODEL")
    if model and os.access(runner, os.X_OK):
        yield "runner, one session", [runner, "-m", model, "--tokens", "5,600,7000,8", "-n", "64", "--greedy", "--quiet",
                                      "--load", "read"]


def main(words):
    interval = .1
    if words[:1] == ["-i"]:
        interval, words = float(words[1]), words[2:]
    if not words:
        sys.exit(__doc__)
    command = words[words.index("--") + 1:] if "--" in words else None
    allocators = [w for w in words[:words.index("--") if command else None] if re.search(r"=.*libtiermalloc", w)]
    head = ["program", "persistent, %", "session, %", "temporary, %", "slots, %", "looks"]
    rows = []
    for a in map(Allocator, allocators[-1:] if not command else allocators):
        for name, one in [(a.name, command)] if command else programs():
            rows.append(row(name, *watch(a, one, interval)))
    table(head, rows)


main(sys.argv[1:])
