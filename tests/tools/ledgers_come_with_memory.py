#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Without TIERMALLOC_DIR a process has a ledger while it holds more than 4 MiB. Objects from before are
# in it, exactly; it goes at a clean exit and stays after a kill; a forked child gets its own.
import json
import os, re, struct, subprocess, sys, time

sys.path.insert(0, os.path.join(os.environ["TM_SRC"], "tests/tools"))
from ledger_file import Ledger, area

place = "/dev/shm/tiermalloc-%d" % os.geteuid()
subject = os.environ["TM_TESTS"] + "/late_subject"
if not os.access("/dev/shm", os.W_OK):
    print("no /dev/shm to write in")
    sys.exit(77)
if int(re.search(r"Seccomp:\s+(\d)", open("/proc/self/status").read()).group(1)) and not os.path.exists("/.dockerenv"):
    print("a system call filter is in force")
    sys.exit(77)


def start(*words, **more):
    env = dict(os.environ, LD_PRELOAD=os.environ["TM_LIB"], **more)
    return subprocess.Popen([subject, *words], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def told(p):
    pid, objects, size = p.stdout.readline().split()
    note_start(int(pid))
    return int(pid), int(objects), int(size)


started = {}


def note_start(pid):
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8") as f:
            started[pid] = f.read().rsplit(")", 1)[1].split()[19]
    except FileNotFoundError:
        pass


def file_of(pid, where=place):
    """The process's own: one of the same number may have been killed earlier and left its file."""
    note_start(pid)
    path = "%s/%d-%s.tm" % (where, pid, started[pid])
    return path if os.path.exists(path) else None


def go_on(p):
    p.stdin.write("\n")
    p.stdin.flush()


def live(path):
    """Counted here, from the records: objects, bytes."""
    ledger = Ledger(path)
    m, granules, sides = ledger.m, area("GRANULES_AT"), area("SIDES_AT")
    objects = size = 0
    for i in range(ledger.header["granules"]):
        kind, tier, heap, slot, slots, first, ident, age, at = struct.unpack_from("<BBHIHHHHQ", m, granules + 24 * i)
        if kind == 3:
            objects, size = objects + 1, size + at
        step = {1: 3, 2: 8}.get(kind)
        for k in range(first, slots) if step else ():
            e = m[sides + at + k * step:sides + at + (k + 1) * step]
            ident = e[0] | e[1] << 8
            if ident != 0xffff:
                objects += 1
                size += slot - (16 - (ident & 15)) % 16 if step == 3 else int.from_bytes(e[3:], "little")
    return objects, size


def exact(path, objects, size, slack_objects=40):
    n, b = live(path)
    # the C library's own: buffers, the thread's blocks
    assert objects <= n <= objects + slack_objects, (n, objects)
    assert size <= b <= size + 80000, (b, size)


# small ones have none
p = start("small", "tell")
pid, *_ = told(p)
assert file_of(pid) is None, "a small process has a ledger"
go_on(p)
p.wait()

# before, during and after the 4 MiB
p = start("small", "large", "tell", "large", "tell", "exit")
pid, objects, size = told(p)
path = file_of(pid)
assert path, "no ledger above 4 MiB"
exact(path, objects, size)
ledger = Ledger(path)
assert ledger.header["before_span_bytes"] == 0, "entries from before were left outside"
go_on(p)
_, objects, size = told(p)
exact(path, objects, size)
assert [s for s in Ledger(path).stacks() if len(s[2]) > 3], "no stacks"
go_on(p)
assert p.wait() == 0
assert file_of(pid) is None, "the ledger stayed behind after a clean exit"

# a kill leaves it
p = start("small", "large", "tell", "kill")
pid, objects, size = told(p)
go_on(p)
p.wait()
path = file_of(pid)
assert path, "the ledger of a killed process is gone"
exact(path, objects, size)
os.unlink(path)

# so does not _exit
p = start("large", "tell", "_exit")
pid, *_ = told(p)
assert file_of(pid)
go_on(p)
p.wait()
assert file_of(pid) is None, "the ledger stayed behind after _exit"

# with another thread's heap there, entries from before stay outside, and are told
p = start("small", "thread", "tell", "more", "tell")
pid, objects, size = told(p)
path = file_of(pid)
h = Ledger(path).header
n, b = live(path)
assert 0 < h["before_span_bytes"] <= 6 << 20, h["before_span_bytes"]
assert n <= objects + 40 and b >= size - h["before_span_bytes"], (n, objects, b, size)
report = [os.environ["TM_BUILD"] + "/tiermalloc", "report", path]
text = subprocess.run(report, capture_output=True, text=True).stdout
assert "slots" in text and ", exact" not in text, text
document = json.loads(subprocess.run(report + ["--json"], capture_output=True, text=True).stdout)
assert document["capture"]["pre_attach"], document["capture"]
assert any(str(h["before_span_bytes"]) in spot for spot in document["blind_spots"]), document["blind_spots"]
go_on(p)
# what spans that begin later hold is in it
_, more_objects, more_size = told(p)
more_n, more_b = live(path)
assert more_size - size > 40 << 20, (more_size, size)
assert more_b - b >= more_size - size - h["before_span_bytes"], (n, b, objects, size, more_n, more_b, more_objects, more_size)
go_on(p)
p.wait()

# forked children: own file, or none
p = start("small", "large", "fork", "small", "tell")
child, *_ = told(p)
assert file_of(p.pid) and file_of(child) is None, "a child that is just born has a ledger"
go_on(p)
p.wait()
p = start("small", "large", "fork", "sleep", "large", "tell")
child, objects, size = told(p)
path = file_of(child)
assert path, "no ledger of a child that works on"
h = Ledger(path).header
assert h["forked"] == 1 and h["parent"] == p.pid and h["pid"] == child
n, b = live(path)
assert n >= objects and b >= size, (n, objects, b, size)
parent = live(file_of(p.pid))
go_on(p)
p.wait()
assert file_of(child) is None and file_of(p.pid) is None

# asked for: from the first allocation, and it stays, the child's too
for more in ({"TIERMALLOC_DIR": os.getcwd() + "/kept"},):
    where = more["TIERMALLOC_DIR"]
    p = start("small", "tell", "fork", "small", "large", "tell", **more)
    pid, objects, size = told(p)
    exact(file_of(pid, where), objects, size)
    go_on(p)
    child, objects, size = told(p)
    path = file_of(child, where)
    assert path and Ledger(path).header["forked"] == 1
    n, b = live(path)
    assert objects <= n and size <= b
    go_on(p)
    p.wait()
    assert file_of(pid, where) and file_of(child, where)
    assert Ledger(file_of(pid, where)).header["clean_exit"] == 1

# a limit on the length of files is no reason to die
p = subprocess.run(["sh", "-c", 'ulimit -f 10000; LD_PRELOAD=$TM_LIB "$1" small large exit', "sh", subject],
                   capture_output=True, text=True)
assert p.returncode == 0 and p.stderr == "", (p.returncode, p.stderr)
