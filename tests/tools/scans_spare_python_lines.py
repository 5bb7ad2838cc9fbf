#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The Python functions of a ledger are the same after leak scans, which write tables of their own beside them;
and no two areas of a ledger begin at one place."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TM_SRC"], "tests/tools"))
from ledger_file import FORMAT, area

places = {}
for name in re.findall(r"#define TM_LEDGER_(\w+_AT)\s+\(\(uint64_t\)\d+ << \d+\)", FORMAT):
    places.setdefault(area(name), []).append(name)
assert len(places) > 20 and all(len(names) == 1 for names in places.values()), places

if not (3, 11) <= sys.version_info < (3, 14):
    print("this is no Python from 3.11 to 3.13")
    sys.exit(77)

SUBJECT = """import ctypes, sys
malloc = ctypes.CDLL(None).malloc
malloc.restype = None
kept = []
def lost%(n)d():
    for size in range(700, 900):
        malloc(size)
        kept.append(bytes(1000))
"""
TOOL = os.environ["TM_BUILD"] + "/tiermalloc"
folder = os.getcwd() + "/ledgers"
with open("subject.py", "w", encoding="utf-8") as f:
    f.write("".join(SUBJECT % {"n": n} for n in range(100)))
    f.write("".join("lost%d()\n" % n for n in range(100)))
    f.write("print('ready', flush=True)\nsys.stdin.read()\n")
p = subprocess.Popen([TOOL, "run", "--python", "--dir", folder, "--", sys.executable, "subject.py"], stdin=subprocess.PIPE,
                     stdout=subprocess.PIPE, env=dict(os.environ, TIERMALLOC_LEAK_WINDOW_MS="200"))
assert p.stdout.readline() == b"ready\n"
path, = [os.path.join(folder, f) for f in os.listdir(folder)]


def functions():
    """The area's used part."""
    with open(path, "rb") as f:
        f.seek(area("PYTHON_AT"))
        return f.read(1 << 19).rstrip(b"\0")


before = functions()
for _ in range(4):
    done = subprocess.run([TOOL, "leaks", "--json", path], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 3, 4), done
    assert "(damaged)" not in done.stdout
after = functions()
print("%d bytes of functions" % len(before))
assert b"lost99" in before and after.startswith(before)
p.stdin.close()
assert p.wait() == 0
