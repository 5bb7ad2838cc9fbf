#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The library exports what symbols.def and tiermalloc.h say, no more, and asks for no newer libc."""
import re

from common import BUILD, LIB, command, files, finish, read, table

problems = []
exported, newest = set(), {}
for line in command("objdump", "-T", LIB).split("\n"):
    m = re.match(r"[0-9a-f]{16} (.{7}) (\S+)\s+[0-9a-f]{16}\s+(?:\.hidden )?(?:\(?([\w.]+)\)?\s+)?(\S+)$", line)
    if not m:
        continue
    flags, section, version, name = m.groups()
    if section == "*UND*":
        if version and version.startswith("GLIBC_"):
            newest[name] = version[len("GLIBC_"):]
    else:
        exported.add(name)
        if version and version != "Base":
            problems.append(f"{name}: exported with version '{version}': the map's node must stay anonymous")

floor = re.search(r'TM_GLIBC_FLOOR "([\d.]+)"', open(f"{BUILD}/config.h", encoding="utf-8").read()).group(1)
number = lambda v: tuple(int(n) for n in v.split(".")) if v[0].isdigit() else (99,)
problems += [f"{n}: needs GLIBC_{v}, the floor is {floor}" for n, v in sorted(newest.items())
             if number(v) > number(floor)]

rows = table("symbols")
if rows is None:
    problems.append("shim/base/symbols.def is missing")
golden = {row[0] for row in rows or []}
public = re.sub(r"/\*.*?\*/", "", read("shim/tiermalloc.h"), flags=re.S)
golden |= set(re.findall(r"\b(tiermalloc_\w+)\s*\(", public))
if cuda := table("cuda_api"):
    golden |= {row[0] for row in cuda} & exported
problems += [f"{n}: in the table, not exported" for n in sorted(golden - exported)]
problems += [f"{n}: exported, in no table" for n in sorted(exported - golden)]
finish(problems, len(exported), "exported symbols")
