#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A thread of the program waits while the ledger begins: while all ledgers have room in their share it opens no
other one, and to make room it opens each once or twice at most, however many it deletes.
Failure: more are opened."""
import ctypes
import os
import struct
import subprocess
import sys

IN_OPEN, IN_NONBLOCK = 0x20, 0o4000
DEAD = 40
place = f"/dev/shm/tiermalloc-{os.getuid()}"
problems = []

if sys.argv[1:] != ["inside"]:
    if subprocess.run(["unshare", "-rm", "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        print("no namespace of its own here")
        sys.exit(77)
    os.execvp("unshare", ["unshare", "-rm", sys.executable, __file__, "inside"])

# A quarter of 512 MiB is more than DEAD ledgers take.
if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512M", "none", "/dev/shm"], stderr=subprocess.DEVNULL,
                  check=False).returncode != 0:
    print("no mount of a tmpfs here")
    sys.exit(77)
env = dict(os.environ, LD_PRELOAD=os.environ["TM_LIB"])
subject = [os.path.join(os.environ["TM_TESTS"], "late_subject"), "small", "large", "kill"]


def run():
    p = subprocess.Popen(subject, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    p.wait()
    return p.pid


def opened(inotify):
    """The names of files of others that were opened, one for each time."""
    pid, names = run(), []
    try:
        data = os.read(inotify, 1 << 20)
    except BlockingIOError:
        data = b""
    while data:
        length, = struct.unpack_from("I", data, 12)
        name = data[16:16 + length].rstrip(b"\0").decode()
        if name.endswith(".tm") and not name.startswith(f"{pid}-"):
            names.append(name)
        data = data[16 + length:]
    return names


for _ in range(DEAD):
    run()
if len(os.listdir(place)) < DEAD:
    print("no ledger is made here")
    sys.exit(77)
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init1(IN_NONBLOCK)
if fd < 0 or libc.inotify_add_watch(fd, place.encode(), IN_OPEN) < 0:
    print("no inotify here")
    sys.exit(77)

names = opened(fd)
if names:
    problems.append(f"{len(names)} ledgers were opened although there is room")

# The share is a quarter of the file system: half of the ledgers have to go.
used = int(subprocess.run(["du", "-sk", "/dev/shm"], capture_output=True, text=True, check=True).stdout.split()[0])
subprocess.run(["mount", "-o", f"remount,size={used * 2}k", "/dev/shm"], check=True)
before = len(os.listdir(place))
names = opened(fd)
gone = before - len(os.listdir(place)) + 1
if gone < before // 3:
    problems.append(f"only {gone} of {before} ledgers went")
if len(names) > before * (gone // 8 + 1):
    problems.append(f"{len(names)} times a ledger was opened to delete {gone} of {before}")
print("\n".join(problems))
sys.exit(1 if problems else 0)
