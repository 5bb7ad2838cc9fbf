#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reports on a terminal: lines are no wider than it, colours unless NO_COLOR or TERM=dumb; in a pipe
whole lines without colours. 'ls' shows each file's whole name. 'top' redraws until 'q'."""
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

TOOL = os.environ["TM_BUILD"] + "/tiermalloc"
problems = []


def on_terminal(words, columns, keys=b"", **more):
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")}
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
        os.execvpe(TOOL, [TOOL] + words, dict(env, **{"TERM": "xterm", **more}))
    out = b""
    if keys:
        out = os.read(fd, 65536)  # it shows something: it runs
        os.write(fd, keys)
    while True:
        try:
            part = os.read(fd, 65536)
        except OSError:
            break
        if not part:
            break
        out += part
    os.waitpid(pid, 0)
    return out.decode()


subprocess.run([os.environ["TM_BUILD"] + "/tests/tools/make_ledger", "l.tm", "300"], check=True)
whole = subprocess.run([TOOL, "frag", "l.tm"], capture_output=True, text=True, check=True).stdout
if "\033" in whole:
    problems.append("colours in a pipe")
if max(map(len, whole.splitlines())) <= 80:
    problems.append("nothing to cut")
for verb in ("report", "leaks", "frag"):
    narrow = on_terminal([verb, "l.tm"], 40, NO_COLOR="1")
    if "\033" in narrow:
        problems.append("%s: colours with NO_COLOR" % verb)
    if max(map(len, narrow.split("\r\n"))) > 40:
        problems.append("%s: a line is wider than the terminal" % verb)
    if "VERDICT" not in narrow.split("\r\n")[0]:
        problems.append("%s: line one is no verdict" % verb)
    whole = subprocess.run([TOOL, verb, "l.tm"], capture_output=True, text=True, check=False).stdout
    wide = " ".join(on_terminal([verb, "l.tm"], 44, NO_COLOR="1").split())
    if " ".join(whole.splitlines()[0].split()) not in wide:
        problems.append("%s: the verdict is cut on a narrow terminal" % verb)
    for spot in whole.partition("blind spots")[2].splitlines():
        if " ".join(spot.split()) not in wide:
            problems.append("%s: a blind spot is cut: %s" % (verb, spot))
for columns in (40, 80, 200):
    rows = on_terminal(["ls", "."], columns, NO_COLOR="1").splitlines()
    if max(map(len, rows)) > columns:
        problems.append("ls: a line is wider than the terminal: %s" % rows)
    if not any(row.rstrip().endswith("./l.tm") for row in rows) or "~" in "".join(rows):
        problems.append("ls: the file's name is cut in %d columns: %s" % (columns, rows))
    if "live" not in rows[0] and columns > 40:
        problems.append("ls: columns are missing in %d columns: %s" % (columns, rows))
if "\033[" not in on_terminal(["leaks", "l.tm"], 100):
    problems.append("no colours on a terminal")
if "\033[" in on_terminal(["leaks", "l.tm"], 100, TERM_PROGRAM="x", NO_COLOR="yes"):
    problems.append("colours with NO_COLOR=yes")
dumb = on_terminal(["top", "l.tm", "-d", "200ms"], 80, keys=b"q", TERM="dumb")
if "\033" in dumb or "VERDICT" not in dumb:
    problems.append("top on a terminal that cannot be cleared: %r" % dumb[:300])
top = on_terminal(["top", "l.tm", "-d", "200ms"], 80, keys=b"q")
if "VERDICT" not in top or "\033[2J" not in top:
    problems.append("top does not draw: %r" % top[:300])
print("\n".join(problems))
sys.exit(bool(problems))
