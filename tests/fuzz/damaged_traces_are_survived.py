#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# needs: xz
"""Traces with flipped bytes, cuts and swapped events: replay reads them or refuses them, and never dies."""
import lzma
import os
import random
import struct
import subprocess
import sys

TOOL = os.environ["TM_BUILD"] + "/tiermalloc"
data = lzma.open(os.environ["TM_SRC"] + "/tests/data/traces/llama-nommap.tmt.xz").read()
magic, events, objects, text = struct.unpack_from("<8sQQQ", data)
body = 32 + events * 36
small = struct.pack("<8sQQQ", magic, 4000, objects, text) + data[32:32 + 4000 * 36] + data[body:]
random.seed(1)
runs = 3000 if os.environ.get("TM_LONG") else 150
for run in range(runs):
    bad = bytearray(small)
    kind = run % 5
    if kind == 0:
        bad = bad[:random.randrange(len(bad))]
    elif kind == 1:
        for _ in range(8):
            bad[random.randrange(32)] = random.randrange(256)
    elif kind == 2:
        for _ in range(200):
            bad[random.randrange(32, 32 + 4000 * 36)] = random.randrange(256)
    elif kind == 3:
        for _ in range(40):
            bad[random.randrange(32 + 4000 * 36, len(bad))] = random.choice(b"0123456789 \n-xmfs")
    else:
        for _ in range(50):
            a, b = (32 + 36 * random.randrange(4000) for _ in range(2))
            bad[a:a + 36], bad[b:b + 36] = bad[b:b + 36], bad[a:a + 36]
    with open("bad.tmt", "wb") as f:
        f.write(bad)
    done = subprocess.run([TOOL, "replay", "--top", "3", "bad.tmt"], capture_output=True)
    if done.returncode not in (0, 1, 2):
        sys.exit(f"run {run}: status {done.returncode}: {done.stderr}")
    if done.returncode and done.stderr.count(b"\n") != 1:
        sys.exit(f"run {run}: not one line: {done.stderr}")
