#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run --python tells Python lines apart: in functions, generators, callbacks from C, threads, forked
children, code with a name outside ASCII, after kill -9. Each Python that is there, 3.11 to 3.13; an
older one runs as ever after one line that says so."""
import glob
import json
import os
import shutil
import subprocess
import sys

TOOL = os.environ["TM_BUILD"] + "/tiermalloc"
SUBJECT = '''import os, sys, threading
kept = []
def plain():
    kept.append(bytes(1000))                     # plain
def generator():
    while True:
        yield bytes(1001)                        # generator
def compare(x):
    kept.append(bytes(1002))                     # callback
    return x
class Größe:
    def methöd(self):
        kept.append(bytes(1003))                 # unicode
def in_thread():
    for i in range(400):
        kept.append(bytes(1004))                 # thread
def child():
    for i in range(400):
        kept.append(bytes(1005))                 # child
    kept[0] = bytes(3 << 20)
    os.kill(os.getpid(), 9)
def grow():
    for i in range(100000):
        kept.append(None)                        # list
g = generator()
for i in range(400):
    plain()
    kept.append(next(g))
    Größe().methöd()
    sorted([1], key=compare)
    two = [bytes(1006), bytes(1007)]             # two
    kept.append(two)
t = threading.Thread(target=in_thread)
t.start()
t.join()
grow()
kept.append(bytearray(5000000))                  # once
print("same text", len(kept), flush=True)
if os.fork() == 0:
    child()
os.wait()
os.kill(os.getpid(), 9)
'''
NAME = "sübject.py"


def line_of(mark):
    return next(n for n, text in enumerate(SUBJECT.splitlines(), 1) if text.endswith(" # " + mark))


def interpreters():
    found = {}
    for path in [sys.executable] + glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3")) + ["/usr/bin/python3"]:
        asked = subprocess.run([path, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True,
                               check=False)
        if asked.returncode == 0:
            found.setdefault((tuple(map(int, asked.stdout.split())), os.path.realpath(path)), path)
    return {version + (i,): path for i, ((version, _), path) in enumerate(sorted(found.items()))}


def by_line(document):
    """(file, line, function) of the innermost Python frame -> objects, bytes and all its Python frames."""
    found = {}
    for site in document["sites"]:
        if site["stack"] is None:
            continue
        frames = [document["frames"][f] for f in document["stacks"][site["stack"]]["frames"]]
        python = [f for f in frames if f["lang"] == "py"]
        if python:
            at = os.path.basename(python[0]["file"]), python[0]["line"], python[0]["fn"]
            entry = found.setdefault(at, [0, 0, []])
            entry[0] += site["live_objs"]
            entry[1] += site["live_bytes"]
            entry[2] = [(f["fn"], f["line"]) for f in python]
    return found


def run(path, folder):
    env = dict(os.environ, TIERMALLOC_DIR=folder, PYTHONDONTWRITEBYTECODE="1", PYTHONWARNINGS="ignore")
    return subprocess.run([TOOL, "run", "--python", "--", path, NAME], env=env, capture_output=True, text=True,
                          check=False)


def documents(folder):
    found = []
    for name in os.listdir(folder):
        done = subprocess.run([TOOL, "report", "--json", os.path.join(folder, name)], capture_output=True, text=True,
                              check=True)
        found.append(json.loads(done.stdout))
    return sorted(found, key=lambda d: -sum(s["live_bytes"] for s in d["sites"]))


def check(path, version, folder):
    problems = []
    done = run(path, folder)
    if "same text" not in done.stdout or done.stderr:
        return ["%s: said %s, %s" % (path, done.stdout, done.stderr)]
    parent, child = documents(folder)[:2]
    if child["process"]["pid"] < parent["process"]["pid"]:
        parent, child = child, parent
    lines = by_line(parent)
    # A line is told from its 33rd allocation on.
    for mark, function, size in (("plain", "plain", 1033), ("generator", "generator", 1034), ("callback", "compare", 1035),
                                 ("unicode", "Größe.methöd", 1036), ("thread", "in_thread", 1037)):
        objects, taken, frames = lines.get((NAME, line_of(mark), function), (0, 0, []))
        if not 360 <= objects <= 400 or taken != objects * size:
            problems.append("%s: %d objects, %d bytes, %s" % (mark, objects, taken, frames))
        if mark != "thread" and [f[0] for f in frames[1:]] != ["<module>"]:
            problems.append("%s: called by %s" % (mark, frames[1:]))
    if lines.get((NAME, line_of("two"), "<module>"), (0,))[0] < 3 * 360:
        problems.append("two: %s" % (lines.get((NAME, line_of("two"), "<module>")),))
    if lines.get((NAME, line_of("list"), "grow"), (0, 0))[1] < 800000:
        problems.append("the list's own memory: %s" % (lines.get((NAME, line_of("list"), "grow")),))
    if lines.get((NAME, line_of("once"), "<module>"), (0, 0))[1] < 5000000:
        problems.append("once: %s" % (lines.get((NAME, line_of("once"), "<module>")),))
    objects, taken, frames = by_line(child).get((NAME, line_of("child"), "child"), (0, 0, []))
    if not 360 <= objects <= 400 or taken != objects * 1038 or [f[0] for f in frames] != ["child", "<module>"]:
        problems.append("child: %d objects, %d bytes, %s" % (objects, taken, frames))
    profile = os.path.join(folder, "p.pb.gz")
    subprocess.run([TOOL, "export", "--format", "pprof", parent["process"]["ledger"], "-o", profile], check=True)
    if shutil.which("go"):
        top = subprocess.run(["go", "tool", "pprof", "-top", "-cum", "-sample_index=inuse_space", profile],
                             capture_output=True, text=True, check=False).stdout
        if "File: python3" not in top or "Größe.methöd" not in top or "[module]" not in top:
            problems.append("pprof said %s" % top[:600])
    return ["Python %s.%s: %s" % (version[0], version[1], p) for p in problems]


def main():
    problems, seen = [], 0
    with open(NAME, "w", encoding="utf-8") as f:
        f.write(SUBJECT)
    for version, path in interpreters().items():
        if version < (3, 6):
            continue
        folder = os.path.join(os.getcwd(), "ledgers-%d-%d-%d" % version)
        if (3, 11) <= version < (3, 14):
            problems += check(path, version, folder)
            seen += 1
        else:
            done = run(path, folder)
            if "same text" not in done.stdout or "CPython 3.11 to 3.13" not in done.stderr or done.stderr.count("\n") != 1:
                problems.append("Python %s: said %s, %s" % (version, done.stdout, done.stderr))
    for problem in problems:
        print("PROBLEM " + problem)
    if seen == 0:
        print("no Python from 3.11 to 3.13 is here")
        return 77
    print("%d Pythons" % seen)
    return 1 if problems else 0


sys.exit(main())
