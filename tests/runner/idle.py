#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Waiting costs no processor time: neither for requests nor among worker threads, so two runners
on the same cores don't collapse each other."""
import os
import re
import shutil
import subprocess
import sys
import time

import claims
from claims import tell as check

RUN = os.path.join(os.environ["TM_BUILD"], "yi-coder-run")
TICK = os.sysconf("SC_CLK_TCK")


def cpu_s(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def load(number, threads, *before):
    return subprocess.Popen([*before, RUN, "serve-load", "-m", "tiny.gguf", "--sessions", "6", "--seed", "1",
                             "--concurrency", "3", "-n", "6", "--share", "0", "-t", str(threads),
                             "--quiet", "--stats", f"stats{number}"], stderr=subprocess.PIPE, text=True)


def instructions(threads):
    """Of such a load, by callgrind. It runs one thread at a time: one that spins spends all its turn on that."""
    run = load(0, threads, "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")
    said = run.communicate()[1]
    found = re.search(r"Collected : (\d+)", said)
    if run.returncode or not found:
        sys.exit("callgrind failed: " + said)
    return int(found[1])


subprocess.run([RUN, "make-model", "--shape", "tiny", "-o", "tiny.gguf"], check=True)

with open("later", "w") as f:
    f.write('{"tokens": [300], "n": 2}\n{"tokens": [301], "n": 2, "arrive_ms": 1e9}\n')
waiting = subprocess.Popen([RUN, "serve-load", "-m", "tiny.gguf", "--requests", "later", "-t", "4", "--quiet"])
# On a busy machine it takes a while until it waits.
while waiting.poll() is None and len(os.listdir(f"/proc/{waiting.pid}/task")) < 4:
    time.sleep(.1)
before, now = -1, 0
while now - before > 1 / TICK:
    time.sleep(1)
    before, now = now, cpu_s(waiting.pid)
check("four threads wait for a request", waiting.poll() is None, f"{now:.2f} s of processor time")
waiting.kill()
waiting.wait()

# Threads that wait for each other by spinning would take all the time the others leave.
if shutil.which("valgrind"):
    one, two = instructions(1), instructions(2)
    check("two threads take what one takes", two <= 1.5 * one, f"{two} instructions, {one}")
both = [load(2, 2), load(3, 2)]
said = [p.communicate()[1] for p in both]
check("two runners at once end", [p.returncode for p in both] == [0, 0], said)
claims.end()
