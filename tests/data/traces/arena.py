#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Dead bytes in arenas: replays a trace's serving phase into bump-allocated blocks.

arena.py trace.tmt.xz [...]   Objects above 1 KiB that were born after the first step mark, at a return
address whose frees so far came mostly within their step (believed after the first), are placed in
64 KiB blocks per thread: at the bump pointer, by un-bumping the newest, or in a hole of 256-byte
lines of a block that has one; larger objects are not for arenas. Prints, per block size, the most
bytes that blocks held beyond what lived in them, and what lived at that moment.
Goal: dead bytes <= max(2 MiB, live).
"""
import bisect
import sys

import label

LINE = 256


class Block:
    def __init__(self, lines):
        self.used = bytearray(lines)
        self.bump = 0
        self.live = 0

    def take(self, lines):
        if self.bump + lines <= len(self.used):
            at = self.bump
            self.bump += lines
        else:
            at = self.used.find(bytes(lines), 0, self.bump)
            if at < 0:
                return None
        self.used[at:at + lines] = b"\1" * lines
        self.live += lines
        return at

    def give(self, at, lines):
        self.used[at:at + lines] = bytes(lines)
        self.live -= lines
        if self.live == 0:
            self.bump = 0
        elif at + lines == self.bump:
            while self.bump > 0 and not self.used[self.bump - 1]:
                self.bump -= 1


def replay(path, block_bytes):
    rows, stacks, _, _ = label.load(path)
    marks = [r[0] for r in rows if r[7] == 8 and r[2] == 1]
    step = lambda t: bisect.bisect_right(marks, t)
    history, born, placed, blocks = {}, {}, {}, {}
    live = held = 0
    worst, live_then = 0, 0

    def free(obj, t):
        nonlocal live, held
        if obj in born:
            site, t0 = born.pop(obj)
            record = history.setdefault(site, [0, 0])
            record[0] += 1
            record[1] += step(t) - step(t0) <= 1
        if obj in placed:
            thread, block, at, lines, size = placed.pop(obj)
            block.give(at, lines)
            live -= size
            if block.live == 0 and len(blocks[thread]) > 1:
                blocks[thread].remove(block)
                held -= block_bytes

    for t, size, obj, prev, stack, height, thread, op, align in rows:
        if prev and op == 3:
            free(prev, t)
        if op in (6, 7):
            free(obj, t)
        if op not in (1, 2, 3, 4, 5) or not obj or t < marks[0] or size < 1024:
            continue
        site = stacks[stack][:1]
        born[obj] = (site, t)
        frees, short = history.get(site, (0, 0))
        if frees == 0 or short * 2 < frees or size > block_bytes // 2:
            continue
        lines = -(-size // LINE)
        mine = blocks.setdefault(thread, [])
        for block in reversed(mine):
            at = block.take(lines)
            if at is not None:
                break
        else:
            block = Block(block_bytes // LINE)
            mine.append(block)
            held += block_bytes
            at = block.take(lines)
        placed[obj] = (thread, block, at, lines, size)
        live += size
        if held - live > worst:
            worst, live_then = held - live, live
    return worst, live_then


for name in sys.argv[1:]:
    for kib in (64, 256, 2048):
        worst, live = replay(name, kib << 10)
        limit = max(2 << 20, live)
        print(f"{name:24s} {kib:5d} KiB blocks: dead {worst / 2**20:7.2f} MiB beside {live / 2**20:6.2f} live"
              f"  {'ok' if worst <= limit else 'MISSED'}", flush=True)
