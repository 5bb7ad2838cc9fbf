#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the loader sees of the library: libc only, bound at once, unloadable never, tiny static TLS."""
import re

from common import LIB, command, finish

problems = []
dynamic = command("readelf", "-dW", LIB)
needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
problems += [f"NEEDED {n}: the library needs libc only" for n in needed if n != "libc.so.6"]
if re.search(r"\(RPATH\)|\(RUNPATH\)|\(TEXTREL\)", dynamic):
    problems.append("RPATH, RUNPATH or TEXTREL in the dynamic section")
# valgrind finds the allocator by this name (--soname-synonyms)
if not re.search(r"\(SONAME\).*\[libtiermalloc\.so\]", dynamic):
    problems.append("the SONAME is not libtiermalloc.so")
flags = " ".join(re.findall(r"\(FLAGS(?:_1)?\)\s+(?:Flags:)?(.*)", dynamic))
problems += [f"{f} is not set" for f in ("NOW", "NODELETE", "NOOPEN") if f not in flags]
if "TEXTREL" in flags:
    problems.append("text relocations")

segments = command("readelf", "-lW", LIB)
if "GNU_RELRO" not in segments:
    problems.append("no RELRO segment")
for m in re.finditer(r"^\s+(\S+)\s+0x\S+ 0x\S+ 0x\S+ 0x\S+ (0x\S+) ([R ][W ][E ])", segments, flags=re.M):
    kind, size, rights = m.group(1), int(m.group(2), 16), m.group(3)
    if "W" in rights and "E" in rights:
        problems.append(f"{kind}: writable and executable")
    # One opened library can have about 1.7 KB of static TLS in all; ours must not be felt.
    if kind == "TLS" and size > 64:
        problems.append(f"{size} bytes of static TLS, at most 64")

if re.search(r"\bIFUNC\b", command("readelf", "-sW", LIB)):
    problems.append("an IFUNC: its resolver may run before the library is relocated")
if re.search(r"__tls_get_addr|TLSDESC|DTPMOD", command("readelf", "-rW", LIB)):
    problems.append("thread-local storage that is not initial-exec")
finish(problems, len(segments.split("\n")), "lines of program headers")
