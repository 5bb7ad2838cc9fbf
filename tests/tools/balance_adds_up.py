#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The balance of a process that runs, that was killed and that ended sums to its resident memory, with a
residual of at most 1 %: of the runner at work, of Python with PYTHONMALLOC=malloc and without, of Redis with
data, of threads and a program's own mappings; and its parts are what they should be."""
import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

BUILD = os.environ["TM_BUILD"]
TOOL = BUILD + "/tiermalloc"
PARTS = ("live_req", "internal", "external", "cached", "metadata", "other_anon", "file", "pinned", "nonresident",
         "residual")
problems = []

PYTHON = """
import mmap, threading, time
m = mmap.mmap(-1, 30 << 20)
m.write(b"x" * (30 << 20))
words = [("w%d" % i) * 10 for i in range(200000)]
half = words[::2]
del words
block = b"x" * (8 << 20)  # large enough for the helper, which answers while the program waits
stop = threading.Event()
for _ in range(4):
    threading.Thread(target=stop.wait, daemon=True).start()
print("ready", flush=True)
try:
    time.sleep(100)
except KeyboardInterrupt:
    pass
"""


def environment(name, **more):
    return dict(os.environ, LD_PRELOAD=os.environ["TM_LIB"], TIERMALLOC_DIR=os.getcwd() + "/" + name, **more)


def look(name, which):
    done = subprocess.run([TOOL, "report", "--json", str(which)], capture_output=True, text=True, check=False)
    if done.returncode:
        problems.append("%s: status %d: %s" % (name, done.returncode, done.stderr))
        return None
    document = json.loads(done.stdout)
    balance = document["balance"]
    rss, residual = balance["rss_bytes"], balance["residual"]
    if sum(balance[p] for p in PARTS) != rss:
        problems.append("%s: the parts sum to %d, not to %d" % (name, sum(balance[p] for p in PARTS), rss))
    if abs(residual) > rss / 100:
        problems.append("%s: residual %d of %d" % (name, residual, rss))
    if balance["nonresident"] > 0 or min(balance[p] for p in PARTS[:8]) < 0:
        problems.append("%s: a sign is wrong: %s" % (name, balance))
    print("%-15s RSS %8d KiB  residual %5.2f %%  %s" % (name, rss >> 10, 100 * residual / rss, {
        p: balance[p] >> 10 for p in PARTS[:9]}))
    return document


def ended(name, child, running, how):
    """The same of its ledger, once it is gone; what it was made of is what it was made of while it ran."""
    ledger, = glob.glob("%s/%d-*.tm" % (name, child.pid))
    document = look("%s, %s" % (name, how), ledger)
    if not document or not running:
        return
    if document["process"]["ended"] != ("killed" if how == "killed" else "clean"):
        problems.append("%s: ended %s" % (name, document["process"]["ended"]))
    for part in ("file", "other_anon"):  # free memory may have gone back meanwhile
        now, then = document["balance"][part], running["balance"][part]
        if how == "killed" and abs(now - then) > running["balance"]["rss_bytes"] * .15:
            problems.append("%s: %s was %d while it ran, is %d of the dead" % (name, part, then, now))
    if not document["mappings"]:
        problems.append("%s: no mappings" % name)


def python(name, **more):
    child = subprocess.Popen([sys.executable, "-c", PYTHON], env=environment(name, **more), stdout=subprocess.PIPE,
                             text=True)
    try:
        child.stdout.readline()
        document = look(name, child.pid)
        if document and not any(m["part"] == "other_anon" and m["bytes"] >= 30 << 20 for m in document["mappings"]):
            problems.append("%s: the program's own mapping is not named" % name)
    finally:
        time.sleep(1.5)
        child.send_signal(signal.SIGKILL if name == "python" else signal.SIGINT)
        child.wait()
        ended(name, child, document, "killed" if name == "python" else "ended")


def redis():
    if not shutil.which("redis-server"):
        print("redis      left out: no redis-server")
        return
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    child = subprocess.Popen(["redis-server", "--port", str(port), "--save", "", "--daemonize", "no"],
                             env=environment("redis"), stdout=subprocess.DEVNULL)
    try:
        for _ in range(100):
            try:
                s = socket.create_connection(("127.0.0.1", port))
                break
            except OSError:
                time.sleep(.1)
        text = b"".join(b"SET key:%d %s\r\n" % (i, b"v" * (50 + i % 500)) for i in range(60000))
        text += b"".join(b"DEL key:%d\r\n" % i for i in range(0, 60000, 3)) + b"PING\r\n"
        s.sendall(text)
        seen = b""
        while b"PONG" not in seen:
            seen = seen[-8:] + s.recv(1 << 16)
        document = look("redis", child.pid)
    finally:
        time.sleep(1.5)  # a sample is due each second
        child.kill()
        child.wait()
        ended("redis", child, document, "killed")


def runner():
    tool = BUILD + "/yi-coder-run"
    clean = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    if not os.path.exists(tool):
        print("runner     left out: not built")
        return
    subprocess.run([tool, "make-model", "--shape", "smollm2-135m", "-o", "m.gguf"], env=clean, check=True,
                   stdout=subprocess.DEVNULL)
    child = subprocess.Popen([tool, "serve-load", "-m", "m.gguf", "--sessions", "500", "--concurrency", "8", "--quiet",
                              "--load", "read"], env=environment("runner"), stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    try:
        time.sleep(4)
        if child.poll() is not None:
            problems.append("runner: ended with %d" % child.returncode)
        else:
            document = look("runner", child.pid)
    finally:
        time.sleep(1.5)  # a sample is due each second
        child.kill()
        child.wait()
        ended("runner", child, document, "killed")


def python_killed():
    """Its helper samples while memory grows; between two samples it may be killed with an old one."""
    for left in range(4, -1, -1):
        before = len(problems)
        python("python")
        if left == 0 or not problems[before:] or not all(p.endswith("of the dead") for p in problems[before:]):
            return
        del problems[before:]


runner()
python_killed()
python("malloc", PYTHONMALLOC="malloc")
redis()
for problem in problems:
    print("PROBLEM " + problem)
sys.exit(bool(problems))
