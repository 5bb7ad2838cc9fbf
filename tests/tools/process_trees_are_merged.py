#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The ledgers of a process tree, merged, are one report: sites, tiers, balance and mappings are the sums of
the processes' own, the verdict counts them, blind spots say whose they are."""
import json
import os
import subprocess
import sys

TOOL, SUBJECT = os.path.join(os.environ["TM_BUILD"], "tiermalloc"), os.path.join(os.environ["TM_TESTS"], "leaks_subject")
problems = []


def document(*args):
    done = subprocess.run([TOOL, *args], capture_output=True, text=True, check=False)
    if done.returncode or done.stderr:
        sys.exit(f"{args}: status {done.returncode}: {done.stderr}")
    return done.stdout


def total(doc, rows, key):
    return sum(r[key] or 0 for r in doc[rows])


subprocess.run([TOOL, "run", "--dir", "ledgers", "--", "sh", "-c",
                f"{SUBJECT} plain 30; ({SUBJECT} reachable 50 & {SUBJECT} plain 70; wait)"],
               env={k: v for k, v in os.environ.items() if not k.startswith("TIERMALLOC")}, check=True)
each = [json.loads(document("report", "--json", f"ledgers/{n}")) for n in sorted(os.listdir("ledgers"))]
document("merge", "ledgers", "-o", "tree.json")
tree = json.load(open("tree.json", encoding="utf-8"))
if len(each) < 4:
    problems.append(f"only {len(each)} ledgers")
for rows, keys in (("sites", ("live_bytes", "live_objs", "alloc_objs", "alloc_bytes", "free_objs")),
                   ("tiers", ("live_req", "slot", "span", "live_objs")), ("mappings", ("bytes", "count"))):
    for key in keys:
        got, want = total(tree, rows, key), sum(total(d, rows, key) for d in each)
        if got != want:
            problems.append(f"{rows}.{key}: {got}, not {want}")
for key, value in tree["balance"].items():
    want = sum(d["balance"][key] or 0 for d in each)
    if (value or 0) != want:
        problems.append(f"balance.{key}: {value}, not {want}")
plain = [s for s in tree["sites"] if s["live_objs"] == 100 and s["alloc_objs"] == 100]
if not plain:
    problems.append("what two processes of one program leak is not one site")
if not tree["verdict"]["text"].startswith(f"{len(each)} processes, "):
    problems.append(f"verdict {tree['verdict']['text']}")
if not any(b.startswith("process ") for b in tree["blind_spots"]):
    problems.append(f"blind spots {tree['blind_spots']}")
if "VERDICT  %d processes" % len(each) not in document("report", "--from-json", "tree.json"):
    problems.append("the report does not say so")
document("export", "--format", "html", "tree.json", "-o", "tree.html")
print("\n".join(problems))
sys.exit(bool(problems))
