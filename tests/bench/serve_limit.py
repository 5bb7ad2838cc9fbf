#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sessions of the runner in a process whose data may not pass 1.15 times what is live at the peak.

Question: how much of a memory limit does each allocator turn into sessions that finish? The limit is
the kernel's (RLIMIT_DATA: all private writable mappings), the same for all, 1.15 times the peak of
live bytes of a run without limit. Metric: share of sessions that finish, waits and parks (a session
that got no memory waited, or was evaluated again), CPU. Refuted by less than 99.9 % for the library.

usage: serve_limit.py [-n SESSIONS] [-k CONCURRENCY] NAME=PATH[,ENV=VALUE..] ...     prints Markdown
TM_BUILD names the build tree.
"""
import json
import os
import random
import subprocess
import sys
import tempfile

from common import Allocator, table

RUN = os.path.join(os.environ.get("TM_BUILD", "build"), "yi-coder-run")
# Many bytes of keys and values for little computing: 2 KiB a token.
SHAPE = ["--shape", "tiny", "--layers", "4", "--embd", "64", "--heads", "8", "--kv-heads", "8", "--ff", "64",
         "--vocab", "512"]


def requests(path, sessions):
    r = random.Random(7)
    with open(path, "w", encoding="ascii") as f:
        for _ in range(sessions):
            length = min(900, 8 + int(r.expovariate(1 / 56)))
            tokens = [r.randrange(10, 500) for _ in range(length)]
            f.write(json.dumps({"tokens": tokens, "n": r.randrange(4, 24)}) + "\n")


def serve(allocator, work, options):
    stats = os.path.join(work, "stats")
    done = allocator.run([RUN, "serve-load", "-m", work + "/model", "--requests", work + "/requests", "-c", "1024",
                          "--kv", "f32", "--quiet", "--stats", stats] + options)
    if done.returncode:
        return None
    with open(stats, encoding="ascii") as f:
        return json.load(f)


def main(words):
    sessions, concurrency = 10000, 512
    while words and words[0] in ("-n", "-k"):
        if words[0] == "-n":
            sessions = int(words[1])
        else:
            concurrency = int(words[1])
        words = words[2:]
    if not words:
        sys.exit(__doc__)
    allocators = [Allocator(w) for w in words]
    with tempfile.TemporaryDirectory() as work:
        subprocess.run([RUN, "make-model"] + SHAPE + ["-o", work + "/model"], check=True)
        requests(work + "/requests", sessions)
        load = ["--sessions", str(sessions), "--concurrency", str(concurrency), "--batch", "2048"]
        peak = serve(allocators[0], work, load)["peak_live_bytes"]
        limit = peak * 115 // 100
        print("%d sessions, %d at a time; live at the peak %.1f MiB, limit %.1f MiB.\n"
              % (sessions, concurrency, peak / 2**20, limit / 2**20))
        rows = []
        for a in allocators:
            s = serve(a, work, load + ["--memory-limit", str(limit), "--limit-by", "mapped"])
            if s is None:
                rows.append([a.name, "the run failed", "", "", "", "", ""])
                continue
            end = s["sessions"]
            rows.append([a.name, "%.2f %%" % (100 * end["finished"] / sessions), end["failed"], s["serve"]["waits"],
                         s["serve"]["parks"], "%.1f" % s["cpu_s"], "%.1f" % (s["peak_rss_bytes"] / 2**20)])
        table(["allocator", "finished", "refused", "waits", "parks", "CPU s", "peak RSS MiB"], rows)


main(sys.argv[1:])
