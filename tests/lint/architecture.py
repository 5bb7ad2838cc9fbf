#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The code map of ARCHITECTURE.md names each source once."""
import re

from common import files, finish, read

section = re.search(r"^## Code map$(.*?)(?=^## |\Z)", read("ARCHITECTURE.md"), flags=re.M | re.S)
if not section:
    finish(["ARCHITECTURE.md: no section 'Code map'"], 1, "sections")
sources = [f for f in files(".c", ".S") if f.startswith(("shim/", "policies/", "cuda_hooks/", "tools/"))]
# A row names a folder in its first cell or in the heading above; names stand in backquotes.
named, folder = [], ""
for line in section.group(1).split("\n"):
    if m := re.match(r"\|? ?`([\w/]+)/`|^#+ `([\w/]+)/`", line):
        folder = m.group(1) or m.group(2)
    for word in re.findall(r"`([\w./-]+\.[cS])`", line):
        named.append(word if "/" in word else f"{folder}/{word}")
problems = [f"ARCHITECTURE.md: the code map lacks {s}" for s in sources if s not in named]
problems += [f"ARCHITECTURE.md: the code map names {n} {named.count(n)} times" for n in sorted(set(named))
             if named.count(n) > 1]
problems += [f"ARCHITECTURE.md: the code map names {n}, which is not there" for n in sorted(set(named))
             if n not in sources]
finish(problems, len(sources), "sources")
