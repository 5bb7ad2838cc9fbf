#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fixed pools and tiers' ceilings in every report: exit, full, JSON, Prometheus; the verdict names them."""
import json
import os
import re
import subprocess

problems = []
env = dict(os.environ, PATH=os.environ["TM_BUILD"] + ":" + os.environ["PATH"], TIERMALLOC_DIR=os.getcwd() + "/ledgers",
           TIERMALLOC_TARGET="python*")
os.mkdir("ledgers", 0o700)


def check(holds, what):
    if not holds:
        problems.append(what)


def run(script, *options, **more):
    return subprocess.run(["tiermalloc", "run", *options, "--", "python3", "-c", script], env=dict(env, **more),
                          capture_output=True, text=True)


# bytes(n) asks for n + 33.
EIGHT = "x = [bytes(2**20 - 33) for i in range(8)]"
done = run(EIGHT, "--report", "full", "--json", "full.json", TIERMALLOC_POOLS="1M*4@session,2M*2")
check(re.search(r"^VERDICT .*; pools exhausted 4 times", done.stderr, re.M), "verdict\n" + done.stderr)
check(re.search(r"^session +1.0 MiB +4 +0 +4 +4 +4$", done.stderr, re.M), "table\n" + done.stderr)
with open("full.json", encoding="utf-8") as f:
    pools = json.load(f)["pools"]
check(len(pools) == 2 and pools[0] == {"tier": "session", "slot_bytes": 1 << 20, "hits": 4, "misses": 0,
                                       "exhausted": 4, "high_water": 4, "slots": 4}, f"json {pools}")

done = run(EIGHT, TIERMALLOC_POOLS="1M*4@session", TIERMALLOC_REPORT="exit")
check(re.search(r"report of process \d+ \(python.*\); pools exhausted 4 times$", done.stderr, re.M),
      "first line at exit\n" + done.stderr)
check(re.search(r"^  session +1.0 MiB +4 +4 +0 +4 +4$", done.stderr, re.M), "table at exit\n" + done.stderr)

CEILING = """
try:
    y = bytes(2**25)
except MemoryError:
    print("refused")
"""
RULES = {"TIERMALLOC_SESSION_MAX": "4M", "TIERMALLOC_RULES": "size>=8M -> tier=session"}
done = run(CEILING, "--report", "full", **RULES)
check(done.stdout == "refused\n", "no MemoryError\n" + done.stderr)
check(re.search(r"^VERDICT .*; 1 requests? refused at a tier's ceiling", done.stderr, re.M), "ceiling\n" + done.stderr)
done = run(CEILING, TIERMALLOC_REPORT="exit", **RULES)
check(re.search(r"\); 1 requests? refused at a tier's ceiling$", done.stderr, re.M), "ceiling at exit\n" + done.stderr)

for name in sorted(os.listdir("ledgers")):
    done = subprocess.run(["tiermalloc", "export", "--format", "prometheus", "ledgers/" + name, "-o", "-"], env=env,
                          capture_output=True, text=True)
    if "exhausted_total{" in done.stdout:
        check(re.search(r'pool_hits_total\{[^}]*tier="session",slot_bytes="1048576"\} 4\n', done.stdout), done.stdout)
        break
else:
    problems.append("no ledger exports pools: " + " ".join(os.listdir("ledgers")))

# What tune proposes is accepted and has its effect.
for name in os.listdir("ledgers"):
    os.unlink("ledgers/" + name)
AGAIN = "for i in range(100):\n    x = [bytes(700000) for k in range(5)]\n    y = bytes(2**20 - 33)\n    x = y = None"
run(AGAIN)
done = subprocess.run("tiermalloc tune ledgers/*.tm -o -", shell=True, env=env, capture_output=True, text=True)
line = re.search(r"^# TIERMALLOC_POOLS=(.*)$", done.stdout, re.M)
check(line and "700033*5@" in line[1] and "1024K*1@" in line[1], "tune\n" + done.stdout + done.stderr)
done = run(AGAIN, TIERMALLOC_POOLS=line[1] if line else "", TIERMALLOC_REPORT="exit")
check("tiermalloc:" not in done.stderr and "exhausted" not in done.stderr.split("\n")[0], "tuned\n" + done.stderr)
check(re.search(r"^  \w+ +683 KiB +5 +500 +0 +0 +5$", done.stderr, re.M), "tuned pool\n" + done.stderr)
for p in problems:
    print(p)
raise SystemExit(1 if problems else 0)
