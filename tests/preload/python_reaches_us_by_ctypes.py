#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""H24 H42 H92: Python's foreign functions. Under us ctypes.CDLL("libc.so.6") and CDLL(None) free
and trim what is ours; without us a late CDLL of the library is refused and Python goes on."""
import os
import subprocess
import sys

UNDER = r"""
import ctypes, os
def rss():
    return int(open("/proc/self/statm").read().split()[1]) * 4
for name in ("libc.so.6", None):
    c = ctypes.CDLL(name)
    c.strdup.restype = c.malloc.restype = c.realloc.restype = ctypes.c_void_p
    c.free.argtypes = [ctypes.c_void_p]
    c.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    c.malloc.argtypes = [ctypes.c_size_t]
    c.malloc_usable_size.argtypes = [ctypes.c_void_p]
    c.malloc_usable_size.restype = ctypes.c_size_t
    for i in range(2000):
        c.free(c.strdup(b"text"))
        c.free(c.realloc(c.malloc(i + 1), i * 50 + 1))
    p = c.malloc(1000)
    assert c.malloc_usable_size(p) >= 1000
    c.free(p)
    data = [bytes(3000) + b"x" * 3000 for _ in range(20000)]
    high = rss()
    del data
    assert c.malloc_trim(0) in (0, 1)
    low = rss()
    assert low < high - 80000, (name, high, low)
print("ok", hasattr(ctypes.CDLL(None), "tiermalloc_version"))
"""
LATE = r"""
import ctypes, os, sys
keep = [str(i) * 50 for i in range(50000)]
try:
    ctypes.CDLL(os.environ["TM_LIB"])
    sys.exit("the library was opened late")
except OSError as e:
    assert "dlopen" in str(e), e
assert not hasattr(ctypes.CDLL(None), "tiermalloc_version")
keep = [s + "x" for s in keep]
print("ok")
"""


def run(code, **env):
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **env}, text=True,
                          capture_output=True)
    if done.returncode or not done.stdout.startswith("ok"):
        sys.exit(f"status {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


if not os.path.exists(os.environ.get("TM_LIB", "")):
    print("no library")
    sys.exit(77)
run(UNDER, LD_PRELOAD="")
if "True" not in run(UNDER, LD_PRELOAD=os.environ["TM_LIB"]):
    sys.exit("not under us")
run(LATE, LD_PRELOAD="")
