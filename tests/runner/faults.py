#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Page faults of a warm run: no token of an answer whose cache was reserved brings one, and neither
does a token of a load once sessions find what others left, with the library in front."""
import json
import os
import subprocess
import sys

RUN, LIB = os.path.join(os.environ["TM_BUILD"], "yi-coder-run"), os.environ["TM_LIB"]
SHAPE = ["--shape", "tiny", "--layers", "4", "--kv-heads", "4"]
passed = failed = 0


def warm(name, most, *args, preload=""):
    global passed, failed
    subprocess.run([RUN, *args, "-m", "model.gguf", "--load", "read", "--seed", "1", "--quiet", "--stats", "stats"],
                   env=dict(os.environ, LD_PRELOAD=preload), stdout=subprocess.DEVNULL, check=True)
    with open("stats") as f:
        stats = json.load(f)
    stats = stats.get("serve", stats)
    each = stats["warm_minor_faults"] / max(1, stats["warm_tokens"])
    good = stats["warm_tokens"] >= 20 and each <= most
    passed += good
    failed += not good
    print(f"{'ok' if good else 'FAILED'}: {name}: {each:.3f} faults in each of {stats['warm_tokens']} tokens")


subprocess.run([RUN, "make-model", *SHAPE, "-o", "model.gguf"], check=True)
# A ring, so that the answer may be of any length; the few are those of the statistics themselves.
answer = ["--tokens", "300,301", "-n", "120", "-c", "130", "--kv-alloc"]
load = ["serve-load", "--sessions", "600", "--concurrency", "8", "-n", "16", "--kv-alloc"]
for libraries in ([""], [LIB]) if os.path.exists(LIB) else ([""],):
    for kind in "full", "ring":
        warm(f"an answer, {kind}, {libraries[0] and 'the library'}", .1, *answer, kind, preload=libraries[0])
if os.path.exists(LIB):
    for kind in "grow", "full":
        warm(f"a load, {kind}, the library", 1, *load, kind, preload=LIB)
print(f"{passed} passed, {failed} failed, 0 skipped")
sys.exit(failed > 0)
