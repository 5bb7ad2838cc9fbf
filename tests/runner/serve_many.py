#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 3600
"""Ten thousand sessions within 1.15 times the memory they have live at their peak: at least 99.9 %
of them end well, with the library in front too."""
import json
import os
import subprocess
import sys

RUN, LIB = os.path.join(os.environ["TM_BUILD"], "yi-coder-run"), os.environ["TM_LIB"]
LOAD = ["serve-load", "-m", "tiny.gguf", "--sessions", "10000", "--concurrency", "64", "-n", "8", "-c", "64",
        "--seed", "1", "--quiet", "--stats", "stats"]
failed = 0


def serve(name, *options, preload=""):
    global failed
    done = subprocess.run([RUN, *LOAD, *options], env=dict(os.environ, LD_PRELOAD=preload))
    with open("stats") as f:
        stats = json.load(f)
    sessions = stats["sessions"]
    print(f"{name}: {sessions}, live at most {stats['peak_live_bytes']} bytes, RSS "
          f"{stats['peak_rss_bytes']}, CPU {stats['cpu_s']} s, {stats['serve']['waits']} waits, "
          f"{stats['serve']['warm_minor_faults'] / max(stats['serve']['warm_tokens'], 1):.3f} faults/token")
    if done.returncode or sessions["started"] != 10000 or sessions["finished"] < 9990:
        print(f"{name}: failed")
        failed += 1
    return stats


subprocess.run([RUN, "make-model", "--shape", "tiny", "-o", "tiny.gguf"], check=True)
peak = serve("no limit")["peak_live_bytes"]
limit = str(peak * 115 // 100)
serve("limit on live bytes", "--memory-limit", limit)
if os.path.exists(LIB):
    serve("the library in front", "--memory-limit", limit, preload=LIB)
sys.exit(failed > 0)
