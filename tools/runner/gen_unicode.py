#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes unicode_runs.h: which code points are letters, numbers or white space.

Byte-level BPE vocabularies were trained on text split by Unicode classes, so the tables have to
be of the version that other runners use: 15.1.  Needs a Python whose unicodedata has that
version, or the package unicodedata2 15.1.0 beside it:

    python3 gen_unicode.py > unicode_runs.h
"""
import sys

VERSION = "15.1.0"

import unicodedata

if unicodedata.unidata_version != VERSION:
    import unicodedata2 as unicodedata
if unicodedata.unidata_version != VERSION:
    sys.exit(f"unicode {VERSION} is needed, this Python has {unicodedata.unidata_version}")

# White_Space of PropList.txt; stable since Unicode 6.3.
SPACES = {*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029,
          0x202F, 0x205F, 0x3000}
OTHER, LETTER, NUMBER, SPACE = range(4)


def class_of(code):
    if code in SPACES:
        return SPACE
    return {"L": LETTER, "N": NUMBER}.get(unicodedata.category(chr(code))[0], OTHER)


runs = []
for code in range(0x110000):
    kind = class_of(code)
    if not runs or runs[-1] & 3 != kind:
        runs.append(code << 2 | kind)

print("/* SPDX-License-Identifier: MIT */")
print(f"/* Written by gen_unicode.py from Unicode {VERSION}: first code point << 2 | class of each run. */")
for at in range(0, len(runs), 10):
    print("\t" + " ".join(f"0x{run:x}," for run in runs[at:at + 10]))
