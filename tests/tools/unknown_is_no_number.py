#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a report does not know is printed as '-', '?' or not at all, never as the number that stands for it."""
import copy
import json
import os
import subprocess
import sys

TOOL, SRC = os.environ["TM_BUILD"] + "/tiermalloc", os.environ["TM_SRC"]
STANDS_FOR_IT = ("18446744073709551615", "9223372036854775808", "4294967295", "nan", "16777216 TiB", "16384 PiB", "16.0 EiB", "213503982334")
problems = []


def without(value):
    """Each number of it unknown; what is an index or names something stays."""
    if isinstance(value, dict):
        return {k: v if k in ("stack", "module", "inline_of", "frames", "id", "cohorts", "t", "series") else without(v) for k, v in value.items()}
    if isinstance(value, list):
        return [without(v) for v in value] if not value or not isinstance(value[0], (int, float)) else []
    return None if isinstance(value, (int, float)) and not isinstance(value, bool) else value


with open(SRC + "/tests/data/reports/server.json", encoding="utf-8") as f:
    server = json.load(f)
nothing = without(copy.deepcopy(server))
for key in ("modules", "frames", "stacks"):
    nothing[key] = server[key]
with open("nothing.json", "w", encoding="utf-8") as f:
    json.dump(nothing, f)
run = None
cases = [[verb] + more for verb in ("report", "leaks", "frag") for more in ([], ["--site", server["sites"][0]["id"]], ["--sort", "pinned"])]
for words in cases:
    for name in ("nothing.json", SRC + "/tests/data/reports/unknown.json"):
        if "unknown" in name and "--site" in words:
            continue
        run = subprocess.run([TOOL, *words, "--from-json", name], capture_output=True, text=True, check=False)
        if "built without jansson" in run.stderr:
            print("this build reads no JSON: jansson is missing")
            sys.exit(77)
        if run.returncode not in (0, 3, 4) or run.stderr:
            problems.append("%s: status %d %s" % (words, run.returncode, run.stderr))
        problems += ["%s of %s: %s" % (words, name, line) for line in run.stdout.splitlines() if any(w in line for w in STANDS_FOR_IT)]
run = subprocess.run([TOOL, "diff", "nothing.json", "nothing.json"], capture_output=True, text=True, check=False)
problems += ["diff: " + line for line in run.stdout.splitlines() if any(w in line for w in STANDS_FOR_IT)]
print("\n".join(problems))
sys.exit(bool(problems))
