#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Who may include whom, by the folder that a quoted include names; own header first."""
import os
import re

from common import GIVEN, SRC, files, finish, read

ALLOWED = {
    "shim/base": {"shim/base"},
    "shim/os": {"shim/base", "shim/os"},
    "policies": {"shim/base", "policies"},
    "shim/heap": {"shim/base", "shim/os", "shim/heap"},
    "shim/unwind": {"shim/base", "shim/os", "shim", "shim/unwind"},
    "shim/ledger": {"shim/base", "shim/os", "shim/heap", "policies", "shim", "shim/unwind", "shim/ledger", "shim/scan"},
    "shim/scan": {"shim/base", "shim/os", "shim/heap", "shim", "shim/unwind", "shim/ledger", "shim/scan"},
    "shim": {"shim/base", "shim/os", "shim/heap", "policies", "shim", "shim/unwind", "shim/ledger", "shim/scan"},
    "cuda_hooks": {"shim/base", "shim/os", "policies", "shim", "shim/ledger", "shim/unwind", "cuda_hooks"},
    "tools/runner": {"tools/runner"},
    "tools/ledger": {"shim/base", "tools", "tools/ledger"},
    "tools/document": {"shim/base", "tools", "tools/document"},
    "tools/analysis": {"shim/base", "tools", "tools/ledger", "tools/document", "tools/analysis", "tools/text"},
    "tools/text": {"shim/base", "tools", "tools/document", "tools/analysis", "tools/text"},
    "tools/export": {"shim/base", "tools", "tools/document", "tools/text", "tools/export"},
    "tools/policy": {"shim/base", "policies", "tools", "tools/policy"},
    "tools/cmd": {"shim/base", "policies", "tools", "tools/ledger", "tools/document", "tools/analysis", "tools/text",
                  "tools/export", "tools/policy", "tools/cmd"},
    "tools": {"shim/base", "tools", "tools/text"},  # what any of its folders may use, and main
    "tests": None,
}
# The installed header stands for the interface, not for a layer.
PUBLIC = "shim/tiermalloc.h"


def layer(name):
    return next((k for k in sorted(ALLOWED, key=len, reverse=True) if name.startswith(k + "/")), None)


problems, seen = [], set()
for name in files(".c", ".h", ".cpp", ".S", ".def"):
    if name.startswith(GIVEN):
        continue
    mine = layer(name)
    if mine is None:
        problems.append(f"{name}: belongs to no layer")
        continue
    seen.add(mine)
    includes = re.findall(r'^\s*#\s*include\s+"([^"]+)"', read(name), flags=re.M)
    for included in includes:
        if included == "config.h" or included == PUBLIC:
            continue
        if mine == "tests" and os.path.exists(os.path.join(SRC, os.path.dirname(name), included)):
            continue  # helpers that lie beside a test program
        if not os.path.exists(os.path.join(SRC, included)):
            problems.append(f"{name}: '{included}' is not written from the root of the tree")
        elif ALLOWED[mine] is not None and layer(included) not in ALLOWED[mine]:
            problems.append(f"{name}: {mine} may not include '{included}'")
    own = os.path.splitext(name)[0] + ".h"
    if name.endswith(".c") and own in includes and includes[0] != own:
        problems.append(f"{name}: its own header '{own}' comes first")
    first = re.search(r'^\s*#\s*include\s+([<"][^>"]+[>"])', read(name), flags=re.M)
    if name.endswith(".c") and own in includes and first and first.group(1) != f'"{own}"':
        problems.append(f"{name}: '{first.group(1)}' stands before its own header")
missing = ALLOWED.keys() - seen
problems += [f"no file found in {m}" for m in sorted(missing)]
finish(problems, len(seen), "layers")
