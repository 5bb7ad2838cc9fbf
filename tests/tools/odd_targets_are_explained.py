#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is given in the place of a ledger is named: one of another version, a report, a page; a foreign file
does not hide a folder, and a number that another program has now is not taken for the one that had it."""
import os
import subprocess
import sys

BUILD = os.environ["TM_BUILD"]
TOOL = BUILD + "/tiermalloc"
problems = []
os.mkdir("folder")
os.mkdir("old")
subprocess.run([BUILD + "/tests/tools/make_ledger", "l.tm", "20"], check=True)
with subprocess.Popen(["sleep", "1000"]) as other:
    os.link("l.tm", "folder/%d-1.tm" % other.pid)
    # Larger than the ledger, so that it would be taken.
    with open("folder/9-9.tm", "wb") as f:
        with open("l.tm", "rb") as good:
            head = bytearray(good.read(4096))
        head[8:12] = (2).to_bytes(4, "little")
        f.write(bytes(head) + b"x" * (32 << 20))
    os.link("folder/9-9.tm", "old/9-9.tm")
    with open("m.json", "w", encoding="utf-8") as f:
        f.write('{"a": "%s"}' % ("x" * 8000))
    with open("x.html", "w", encoding="utf-8") as f:
        f.write("<!doctype html>" + "x" * 8000)

    def look(words, status, *said, **variables):
        run = subprocess.run([TOOL, *words], capture_output=True, text=True, check=False, env=dict(os.environ, **variables))
        text = run.stdout + run.stderr
        if run.returncode != status or not all(w in text for w in said):
            problems.append("%s: status %d, '%s' '%s'" % (words, run.returncode, run.stdout[:300], run.stderr))

    look(["report", "old/9-9.tm"], 2, "a ledger of another version (2, this command reads ")
    look(["report", "folder"], 0, "VERDICT")
    look(["report", "old"], 2, "that this command reads, but 1 other")
    look(["ls", "folder"], 0, "other vers")
    look(["merge", "folder", "-o", "-"], 0, "'folder/9-9.tm' is left out: it is a ledger of another version")
    look(["tune", "folder", "-o", "-"], 0)
    look(["report", "m.json"], 2, "--from-json m.json")
    look(["report", "x.html"], 2, "a page")
    pid = str(other.pid)
    look(["report", pid], 2, "process %s is now another program" % pid, "folder/%s-1.tm" % pid, TIERMALLOC_DIR="folder")
    look(["report", pid], 2, "below 4 MiB none is kept", "TIERMALLOC_DIR", TIERMALLOC_DIR="old")
    other.kill()
look(["report", pid], 0, "VERDICT", TIERMALLOC_DIR="folder")
with open("lk.py", "w", encoding="utf-8") as f:
    f.write("print(1)\n")
look(["doctor", "lk.py"], 2, "'lk.py' is no command, but a file here")
look(["doctor", "."], 2, "is a folder")
look(["doctor", "true", "-m", "model"], 0, "can be served")

# A name neither begins another line nor steers the terminal; one that is UTF-8 stands as it is.
ODD = "no\nsuch\x1b[31m\x7f/d\u00e9p\u00f4t"
for words in (["report"], ["leaks"], ["frag"], ["explain"], ["symbols"], ["replay"], ["ls"], ["gc"], ["doctor"],
              ["top", "-p"], ["diff", "l.tm"], ["report", "--from-json"], ["run"], ["frag", "--sort"], [],
              ["report", "l.tm", "--fail-on"], ["merge", "-o", "x.json"], ["tune", "-o", "x"], ["trace", "-o"],
              ["trace", "-o", "x", "--convert"], ["export", "--format"]):
    run = subprocess.run([TOOL, *words, ODD], capture_output=True, check=False, env=dict(os.environ, LC_ALL="C"))
    if run.returncode not in (1, 2) or run.stderr.count(b"\n") != 1 or b"\x1b" in run.stderr or b"\x7f" in run.stderr:
        problems.append("%s with an odd name: status %d, %r" % (words, run.returncode, run.stderr))
    elif b"such" in run.stderr and "no?such?[31m?/d\u00e9p\u00f4t".encode() not in run.stderr:
        problems.append("%s: the name is not shown: %r" % (words, run.stderr))
print("\n".join(problems))
sys.exit(bool(problems))
