#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A ledger is removed, its directory too, another file takes its name, its mode is changed, holes are made in
it where nothing was written and where something was: its program goes on, forks, and ends as it would have.
(To cut one short is not among these: see BUGS in tiermalloc(7).)
Failure: a signal, or an end that waits."""
import ctypes
import glob
import os
import shutil
import subprocess
import sys

PROGRAM = """
import os, sys
keep = [bytearray(600 + i % 3000) for i in range(5000)]
print("ready", flush=True)
sys.stdin.readline()
more = [bytearray(600 + i % 5000) for i in range(10000)]
del keep, more[::3]
pid = os.fork()
if pid == 0:
    less = [bytearray(700 + i % 9000) for i in range(5000)]
    os._exit(0)
print("done", os.waitpid(pid, 0)[1], flush=True)
"""


def dig(path, begin, length):
    fd = os.open(path, os.O_RDWR)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
    # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE; a file system without it has nothing to be tested
    libc.fallocate(fd, 3, begin, length)
    os.close(fd)


def replace(path):
    open(path + ".new", "w").close()
    os.rename(path + ".new", path)


WAYS = {
    "remove": os.unlink,
    "directory": lambda path: shutil.rmtree(os.path.dirname(path)),
    "replace": replace,
    "mode": lambda path: os.chmod(path, 0),
    "holes": lambda path: dig(path, 16 << 10, 12 << 30),
    "all": lambda path: dig(path, 0, 12 << 30),
}
for way, take in WAYS.items():
    for ledger in ("on", "deep") if way in ("remove", "holes") else ("on",):
        directory = way + ledger
        env = dict(os.environ, LD_PRELOAD=os.environ["TM_LIB"], TIERMALLOC_DIR=directory, TIERMALLOC_LEDGER=ledger,
                   PYTHONMALLOC="malloc")
        run = subprocess.Popen([sys.executable, "-c", PROGRAM], env=env, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert run.stdout.readline() == "ready\n"
        path, = glob.glob(directory + "/*.tm")
        take(path)
        out, error = run.communicate("\n")
        assert run.returncode == 0 and out == "done 0\n", (way, ledger, run.returncode, out, error)
        assert all(line.startswith("tiermalloc: ") for line in error.splitlines()), (way, ledger, error)
