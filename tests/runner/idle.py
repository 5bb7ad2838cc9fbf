#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Waiting costs no processor time: neither for requests nor among worker threads, so two runners
on the same cores don't collapse each other."""
import json
import os
import subprocess
import time

import claims
from claims import tell as check

RUN = os.path.join(os.environ["TM_BUILD"], "yi-coder-run")
TICK = os.sysconf("SC_CLK_TCK")


def cpu_s(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def load(number, threads):
    return subprocess.Popen([RUN, "serve-load", "-m", "tiny.gguf", "--sessions", "60", "--seed", "1",
                             "--concurrency", "8", "-n", "60", "--share", "0", "-t", str(threads),
                             "--quiet", "--stats", f"stats{number}"])


def stats(number):
    with open(f"stats{number}") as f:
        return json.load(f)


subprocess.run([RUN, "make-model", "--shape", "tiny", "-o", "tiny.gguf"], check=True)

with open("later", "w") as f:
    f.write('{"tokens": [300], "n": 2}\n{"tokens": [301], "n": 2, "arrive_ms": 3000}\n')
waiting = subprocess.Popen([RUN, "serve-load", "-m", "tiny.gguf", "--requests", "later", "-t", "4",
                            "--quiet"])
time.sleep(1)
before = cpu_s(waiting.pid)
time.sleep(1)
check("four threads wait for a request", cpu_s(waiting.pid) - before <= 1 / TICK,
      f"{cpu_s(waiting.pid) - before:.2f} s of 1 s")
check("and serve it", waiting.wait() == 0)

# Threads that wait for each other by spinning would take all the time the others leave.
load(0, 1).wait()
load(1, 2).wait()
one, two = stats(0)["cpu_s"], stats(1)["cpu_s"]
check("two threads take what one takes", two <= 2 * one + .2, f"{two:.2f} s, {one:.2f} s")
both = [load(2, 2), load(3, 2)]
check("two runners at once end", [p.wait() for p in both] == [0, 0])
for number in 2, 3:
    shared = stats(number)["cpu_s"]
    check("and take what each takes alone", shared <= 2 * two + .2, f"{shared:.2f} s, {two:.2f} s")
claims.end()
