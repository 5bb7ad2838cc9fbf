#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""'doctor' on damaged programs: any answer, but no crash and no hang."""
import os
import random
import subprocess
import sys

rounds = 5000 if os.environ.get("TM_LONG") else 150
tool = os.path.join(os.environ["TM_BUILD"], "tiermalloc")
with open("/bin/true", "rb") as f:
    whole = f.read()
rng = random.Random(7)
bad = 0
for i in range(rounds):
    data = bytearray(whole)
    kind = i % 3
    if kind == 0:  # a cut file
        data = data[:rng.randrange(len(data))]
    elif kind == 1:  # the headers, where all offsets are
        for _ in range(rng.randrange(1, 8)):
            data[rng.randrange(min(len(data), 1024))] = rng.choice([0, 1, 0x7f, 0x80, 0xff, rng.randrange(256)])
    else:  # the section table at the end
        for _ in range(rng.randrange(1, 16)):
            data[len(data) - 1 - rng.randrange(2048)] = rng.choice([0, 0xff, rng.randrange(256)])
    with open("broken", "wb") as f:
        f.write(data)
    os.chmod("broken", 0o755)
    try:
        done = subprocess.run([tool, "doctor", "./broken"], capture_output=True, timeout=300)
        status = done.returncode
    except subprocess.TimeoutExpired:
        status = "hang"
    if status not in (0, 1, 2):
        bad += 1
        print(f"round {i}: status {status}")
sys.exit(1 if bad else 0)
