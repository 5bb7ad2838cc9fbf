#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The table of classes beside tiers: without the library its column is empty; with it all bytes are
there and the large ones, weights and caches, lie in the tiers that their classes belong in."""
import json
import os
import re
import subprocess

import claims
from claims import tell as check

RUN, LIB = os.path.join(os.environ["TM_BUILD"], "yi-coder-run"), os.environ["TM_LIB"]
SHAPE = ["--shape", "tiny", "--layers", "4", "--embd", "512", "--heads", "8", "--kv-heads", "8", "--ff", "1024"]


def run(*args, preload=""):
    done = subprocess.run([RUN, *args, "-m", "model.gguf", "--load", "read", "--greedy", "--stats", "stats"],
                          env=dict(os.environ, LD_PRELOAD=preload), capture_output=True, text=True, check=True)
    with open("stats") as f:
        return json.load(f)["tiers"], done.stderr


subprocess.run([RUN, "make-model", *SHAPE, "-o", "model.gguf"], check=True)
load = ["serve-load", "--sessions", "24", "--concurrency", "8", "--share", "0", "-n", "16"]
for name, args in ("one prompt", ["-p", "while", "-n", "20"]), ("a load", load):
    tiers, shown = run(*args)
    check(f"{name}, no library", all(tiers[t]["library_bytes"] is None and tiers[t]["runner_bytes"] > 0 for t in
          ("total", "persistent", "session", "temporary")), tiers)
    check("and the table says so", re.search(r"^tier .*without the library$", shown, re.M) and
          re.search(r"^session +[\d.]+ +-$", shown, re.M), shown if "tier " not in shown else "")
if not os.path.exists(LIB):
    claims.end()
tiers, shown = run(*load, preload=LIB)
theirs = {t: tiers[t]["library_bytes"] for t in ("total", "persistent", "session", "temporary")}
ours = {t: tiers[t]["runner_bytes"] for t in theirs}
check("all bytes are there", .95 * ours["total"] <= theirs["total"] <= 1.1 * ours["total"] + 200000, (ours, theirs))
check("tiers add up", abs(sum(theirs[t] for t in ("persistent", "session", "temporary")) - theirs["total"]) <
      .01 * theirs["total"], theirs)
check("weights are persistent", .95 * ours["persistent"] <= theirs["persistent"] <= 1.1 * ours["persistent"], (ours, theirs))
wrong = sum(abs(theirs[t] - ours[t]) for t in ("persistent", "session", "temporary")) / 2
check("nine of ten bytes lie where they belong", wrong <= .1 * ours["total"], f"{wrong / ours['total']:.3f} elsewhere")
check("the table has both", re.search(r"^session +[\d.]+ +[\d.]+$", shown, re.M), "")
claims.end()
