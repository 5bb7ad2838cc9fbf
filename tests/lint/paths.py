#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No path of somebody's machine, no build product and no missing licence line in the tree."""
import re

from common import GIVEN, files, finish, read

# Brackets keep this file from naming what it looks for.
MACHINE = re.compile(r"(?<![\w.$}])/(?:[w]ork|[r]oot|[f]arm|[h]ome/\w+)/")
PRODUCT = re.compile(r"(^configure$|Makefile\.in$|\.o$|\.so(\.[0-9.]+)?$|\.gguf$|aclocal\.m4$|\.orig$|\.rej$)")
names = files()
problems = []
for name in names:
    if PRODUCT.search(name):
        problems.append(f"{name}: a build product")
    if name.endswith((".xz", ".png", ".gz")):
        continue
    text = read(name)
    for number, line in enumerate(text.split("\n"), 1):
        if MACHINE.search(line):
            problems.append(f"{name}:{number}: names a path of a machine: {line.strip()[:80]}")
    if name.endswith((".c", ".h", ".cpp", ".S", ".def", ".py", ".sh", ".mk")) and not name.startswith(GIVEN) \
            and "SPDX-License-Identifier: MIT" not in "\n".join(text.split("\n")[:3]):
        problems.append(f"{name}: no 'SPDX-License-Identifier: MIT' in its first lines")
finish(problems, len(names), "files")
