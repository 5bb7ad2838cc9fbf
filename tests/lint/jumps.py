#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An exported allocation function only jumps: what it leads to sees the program's return address."""
import re

from common import BUILD, LIB, command, finish, skip, table

KINDS = {"ALLOC", "FREE", "CALLOC", "REALLOC", "REALLOCARRAY", "ALIGNED", "POSIX", "USABLE", "FREE_SIZED",
         "FREE_ALIGNED_SIZED"}

with open(f"{BUILD}/config.h", encoding="utf-8") as f:
    if re.search(r"TM_DEBUG 1", f.read()):
        skip("a debug build makes no tail jumps")
if "elf64-x86-64" not in command("objdump", "-f", LIB):
    skip("not an x86-64 build")

bodies, name = {}, None
for line in command("objdump", "-d", "--no-show-raw-insn", LIB).split("\n"):
    if m := re.match(r"[0-9a-f]+ <(.*)>:", line):
        name = m.group(1)
        bodies[name] = []
    elif name and (m := re.match(r"\s*[0-9a-f]+:\s+(.*\S)", line)):
        bodies[name].append(m.group(1))
# One address may have several names; objdump shows one of them.
address = {}
for line in command("objdump", "-T", LIB).split("\n"):
    if m := re.match(r"([0-9a-f]{16}) .{7} \.text\s.*?(\S+)$", line):
        address[m.group(2)] = m.group(1)
shown = {address[n]: n for n in bodies if n in address}

problems, seen = [], 0
for row in table("symbols") or []:
    symbol, kind = row[0], row[1]
    if kind not in KINDS and not kind.startswith(("NEW", "DELETE")):
        continue
    body = bodies.get(shown.get(address.get(symbol, ""), symbol))
    if body is None:
        continue  # lint/symbols says so
    seen += 1
    for instruction in body:
        if re.match(r"(call|push|enter|sub\s+\$\S+,%rsp)", instruction):
            problems.append(f"{symbol}: '{instruction}' before its jump")
            break
        if re.match(r"(notrack )?jmp|ret", instruction):
            break
finish(problems, seen, "functions")
