#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Only the baseline of x86-64 outside the objects that a run-time check guards (their names say so)."""
import glob
import os
import re
import subprocess

from common import BUILD, LIB, finish, skip

# tzcnt is left out: gcc writes 'rep bsf' for it, which every x86-64 runs.
NEWER = re.compile(r"^(v[a-z0-9]{3,}|andn|bextr|blsi|blsr|blsmsk|bzhi|mulx|pdep|pext|rorx|sarx|shlx|shrx|lzcnt|"
                   r"popcnt|crc32[bwlq]?|movbe|p(shufb|abs[bwd]|alignr|hadd\w+|blend\w+|min[su][bd]|max[su][bd]|"
                   r"mulld|extr[bdq]|insr[bdq]|test)|lddqu|round[ps][sd]|dpps)$")
NOT_VECTOR = {"verr", "verw", "vmcall"}
GUARDED = re.compile(r"(avx|f16c|fma|vnni|sse4|amx|bmi|yiv3_a-)")

if os.uname().machine != "x86_64" or not LIB or "X86-64" not in subprocess.run(
        ["readelf", "-h", LIB], capture_output=True, text=True).stdout:
    skip("not an x86-64 build")

objects = [LIB] + [o for o in glob.glob(f"{BUILD}/tools/**/*.o", recursive=True)
                   if not GUARDED.search(os.path.basename(o))]
problems = []
for path in objects:
    function = "?"
    listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], capture_output=True, text=True)
    for line in listing.stdout.split("\n"):
        if m := re.match(r"[0-9a-f]+ <(.*)>:", line):
            function = m.group(1)
        elif m := re.match(r"\s*[0-9a-f]+:\s+(?:(?:lock|rep\w*|notrack|bnd|data16) )*(\S+)", line):
            if NEWER.match(m.group(1)) and m.group(1) not in NOT_VECTOR:
                problems.append(f"{os.path.relpath(path, BUILD)}: {function}: '{m.group(1)}'")
finish(problems[:40], len(objects), "objects")
