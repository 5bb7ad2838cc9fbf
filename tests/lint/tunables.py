#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every TIERMALLOC_ word in the tree is a known variable, tier or header name."""
import re

from common import GIVEN, files, finish, read, table

# They misspell on purpose.
MISSPELLED = ("tests/unit/test_tunables.c", "tests/preload/bad_values_cost_one_line.py", "tests/fuzz/tunables.c")

problems = []
rows = table("tunables")
known = {"TIERMALLOC_CONF", "TIERMALLOC_WEAK", "TIERMALLOC_H"}
known |= {f"TIERMALLOC_{row[0]}" for row in table("tiers") or []} | {"TIERMALLOC_AUTO"}
if rows is None:
    problems.append("shim/base/tunables.def is missing")
known |= {row[0] for row in rows or []}
public = read("shim/tiermalloc.h")
known |= set(re.findall(r"\bTIERMALLOC_[A-Z]+\b", public))
seen = 0
for name in files(".c", ".h", ".cpp", ".def", ".md", ".sh", ".py", ".1", ".3", ".5", ".7", "quickstart"):
    if name.startswith(GIVEN) or name == "shim/tiermalloc.h" or name.startswith("tests/lint/") \
            or name in MISSPELLED:
        continue
    for number, line in enumerate(read(name).split("\n"), 1):
        for word in re.findall(r"\bTIERMALLOC_[A-Z][A-Z0-9_]*(?![A-Z0-9_{*])", line):
            seen += 1
            if word not in known and "NO_SUCH" not in word:
                problems.append(f"{name}:{number}: '{word}' is in no table")
finish(problems, seen, "uses")
