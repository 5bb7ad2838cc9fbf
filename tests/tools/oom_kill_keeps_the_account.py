#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# serial: yes
"""A program that the kernel kills for memory, in a control group of 200 MiB, leaves a whole report: it is
told to have been killed, near its limit, what lived equals the program's own count within .1 %, and the
balance adds up."""
import glob
import json
import os
import struct
import subprocess
import sys
import time

LIMIT = 200 << 20
V1 = os.path.exists("/sys/fs/cgroup/memory/memory.limit_in_bytes")
GROUP = "/sys/fs/cgroup/%stm-test-%d" % ("memory/" if V1 else "", os.getpid())


def put(name, text):
    with open(GROUP + "/" + name, "w") as f:
        f.write(text)


def run():
    try:
        put("memory.limit_in_bytes" if V1 else "memory.max", str(LIMIT))
    except OSError as e:
        print("no memory limit can be set: %s" % e)
        sys.exit(77)
    for name, text in (("memory.swappiness", "0"), ("memory.swap.max", "0")):
        try:
            put(name, text)
        except OSError:
            pass  # no swap here
    env = dict(os.environ, LD_PRELOAD=os.environ["TM_LIB"], TIERMALLOC_DIR=os.path.abspath("ledgers"))
    child = subprocess.Popen([os.environ["TM_TESTS"] + "/oom_subject", "counts"], env=env, stdin=subprocess.PIPE)
    put("cgroup.procs", str(child.pid))
    child.stdin.write(b"go\n")
    child.stdin.flush()
    try:
        return child.pid, child.wait(600)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        sys.exit("the kernel did not end it")


def killed():
    """One killed run: the document of its report, and what the program counted, objects and bytes."""
    if os.path.exists("counts"):
        os.remove("counts")
    try:
        os.mkdir(GROUP)
    except OSError as e:
        print("no control group can be made here: %s" % e)
        sys.exit(77)
    try:
        pid, status = run()
    finally:
        for _ in range(5000):
            try:
                os.rmdir(GROUP)
                break
            except OSError:
                time.sleep(.02)
    assert status == -9, status
    ledger, = glob.glob("ledgers/%d-*.tm" % pid)
    done = subprocess.run([os.environ["TM_BUILD"] + "/tiermalloc", "report", "--json", ledger], capture_output=True,
                          text=True)
    assert done.returncode in (0, 3), done
    with open("counts", "rb") as f:
        counts = f.read()
    return json.loads(done.stdout), [sum(struct.unpack_from("<q", counts, i * 128 + at)[0] for i in range(4))
                                     for at in (0, 8)]


def refused(doc):
    """How often memory was refused; the text of such an event ends with '.. N times'."""
    texts = [e["text"] for e in doc["events"] if e["kind"] == "out of memory"]
    return sum(int(t.rsplit(" ", 2)[1]) if t.endswith(" times") else 1 for t in texts)


def is_clear(doc):
    """Where the group is full of what no fault can be blamed for, the kernel refuses mappings for a while and
    kills later; and on a busy machine it kills before the program's last sheet, or while it is made. What is
    counted then is not judged here."""
    balance = doc["balance"]
    if refused(doc) >= 1000:
        print("refused %d times before the end: once more" % refused(doc))
    elif balance["rss_bytes"] <= LIMIT / 20 or abs(balance["residual"]) > balance["rss_bytes"] / 100:
        print("the balance is not of a moment near the end: once more", balance)
    else:
        return True
    return False


for _ in range(5):
    doc, (objects, size) = killed()
    if is_clear(doc):
        break
assert doc["process"]["ended"] == "killed", doc["process"]


def own(site):
    frame = doc["frames"][doc["stacks"][site["stack"]]["frames"][0]] if site["stack"] is not None else None
    return frame and frame["module"] is not None and doc["modules"][frame["module"]]["path"].endswith("/oom_subject")


rows = [s for s in doc["sites"] if own(s)]
seen_bytes, seen = (sum(s[k] for s in rows) for k in ("live_bytes", "live_objs"))
balance = doc["balance"]
print("program %d objects %d bytes, report %d and %d; %s; balance %s" % (objects, size, seen, seen_bytes,
                                                                        doc["verdict"]["text"], balance))
print(doc["blind_spots"], [(e["kind"], e["text"]) for e in doc["events"]][-4:])
assert objects > 10000 and abs(seen - objects) <= objects / 1000 and abs(seen_bytes - size) <= size / 1000
assert abs(balance["residual"]) <= balance["rss_bytes"] / 100, balance
assert balance["rss_bytes"] > LIMIT / 20, balance
