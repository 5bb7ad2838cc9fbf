#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""'top' fills a terminal of any size and scrolls none, follows a change of its size, and leaves it as it
was: by q, an interrupt, a hang-up, SIGTERM. A locale without UTF-8 gets ASCII; names differ at their ends."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

TOOL = os.environ["TM_BUILD"] + "/tiermalloc"
SUBJECT = os.environ["TM_TESTS"] + "/top_subject"
problems = []


class Screen:
    """As much of a terminal as the command uses."""

    def __init__(self, rows, columns):
        self.scrolled, self.odd, self.hidden, self.pictures = 0, [], False, 0
        self.resize(rows, columns)

    def resize(self, rows, columns):
        self.rows, self.columns, self.y, self.x = rows, columns, 0, 0
        self.cells = [[" "] * columns for _ in range(rows)]

    def down(self):
        if self.y + 1 < self.rows:
            self.y += 1
        else:
            self.scrolled += 1
            self.cells = self.cells[1:] + [[" "] * self.columns]

    def control(self, sequence):
        if sequence == "\033[H":
            self.y = self.x = 0
            self.pictures += 1
        elif sequence == "\033[2J":
            self.cells = [[" "] * self.columns for _ in range(self.rows)]
        elif sequence == "\033[K":
            self.cells[self.y][min(self.x, self.columns):] = [" "] * (self.columns - min(self.x, self.columns))
        elif sequence == "\033[J":
            for y in range(self.y + 1, self.rows):
                self.cells[y] = [" "] * self.columns
        elif sequence in ("\033[?25l", "\033[?25h"):
            self.hidden = sequence.endswith("l")
        elif not re.fullmatch(r"\033\[[0-9;]*m", sequence):
            self.odd.append(sequence)

    def feed(self, text):
        for part in re.findall(r"\033\[[?0-9;]*[A-Za-z]|\033.|[^\033]", text, flags=re.S):
            if part[0] == "\033":
                self.control(part)
            elif part == "\r":
                self.x = 0
            elif part == "\n":
                self.down()
            else:
                if self.x >= self.columns:
                    self.x = 0
                    self.down()
                self.cells[self.y][self.x] = part
                self.x += 1

    def lines(self):
        return ["".join(row).rstrip() for row in self.cells]


class Terminal:
    def __init__(self, words, rows, columns, **env):
        clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "LINES", "LC_ALL", "LANG", "LC_CTYPE")}
        self.screen = Screen(rows, columns)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execvpe(TOOL, [TOOL, "top", "-d", "100ms"] + words, clean | {"TERM": "xterm", "LC_ALL": "C.UTF-8"} | env)
        self.text = ""

    def until(self, holds, what):
        """Feeds the screen until it shows what is wanted; the watchdog of the tests ends a wait in vain."""
        while not holds(self.screen.lines()):
            try:
                part = os.read(self.fd, 65536).decode("utf-8", "surrogateescape") if select.select([self.fd], [], [], 60)[0] else ""
            except OSError:
                part = ""
            if not part:
                problems.append("%s: never seen: %s" % (what, self.screen.lines()))
                return
            self.text += part
            self.screen.feed(part)

    def resize(self, rows, columns):
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def end(self, how):
        """The exit status; the screen has all that came."""
        how(self)
        while True:
            try:
                part = os.read(self.fd, 65536).decode("utf-8", "surrogateescape")
            except OSError:
                break
            if not part:
                break
            self.text += part
            self.screen.feed(part)
        status = os.waitpid(self.pid, 0)[1]
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)


def key(char):
    return lambda t: os.write(t.fd, char)


def is_full(rows):
    """The last line is the last row; on a high terminal it follows the sites, of which there are not so many."""
    def holds(lines):
        written = [line for line in lines if line]
        return lines[0].startswith("VERDICT") and written[-1].startswith("q ends it") and (rows > 24 or lines[rows - 1] == written[-1])
    return holds


subject = subprocess.Popen([SUBJECT], stdout=subprocess.PIPE, env=dict(os.environ, LD_PRELOAD=os.environ["TM_LIB"],
                                                                       TIERMALLOC_DIR=os.getcwd() + "/ledgers"))
subject.stdout.readline()
target = str(subject.pid)
os.environ["TIERMALLOC_DIR"] = os.getcwd() + "/ledgers"

for rows, columns in ((24, 80), (24, 120), (50, 120), (50, 200), (12, 40), (6, 30), (24, 100)):
    name = "%d x %d" % (columns, rows)
    t = Terminal([target], rows, columns)
    t.until(is_full(rows), name)
    lines = t.screen.lines()
    sites = [line for line in lines if "MiB" in line or re.match(r" +\d{4,} ", line)]
    if t.screen.scrolled or t.screen.odd:
        problems.append("%s: scrolled by %d, odd sequences %s" % (name, t.screen.scrolled, t.screen.odd))
    if rows >= 24 and columns >= 80:
        for ending in ("_alpha", "_omega"):  # the middle of a name is left out, not what tells it from others
            if not any(re.search(ending + r"  top_subject\.c:\d+", line) for line in lines):
                problems.append("%s: no row of a site that ends in %s:\n%s" % (name, ending, "\n".join(lines)))
    if not sites:
        problems.append("%s: no sites: %s" % (name, lines))
    status = t.end(key(b"q"))
    if status != 0 or t.screen.hidden or t.screen.scrolled > 1:
        problems.append("%s: after q: status %d, cursor hidden %s, scrolled %d" % (name, status, t.screen.hidden, t.screen.scrolled))

t = Terminal([target], 24, 80)
t.until(is_full(24), "before")
t.resize(40, 130)
t.until(is_full(40), "larger")
t.resize(10, 60)
t.until(is_full(10), "smaller")
if t.screen.scrolled:
    problems.append("resized: scrolled by %d" % t.screen.scrolled)
if t.end(key(b"\x03")) != 0 or t.screen.hidden:
    problems.append("interrupt: cursor hidden %s" % t.screen.hidden)
for number in (signal.SIGTERM, signal.SIGHUP):
    t = Terminal([target], 24, 80)
    t.until(is_full(24), "before a signal")
    if t.end(lambda t: os.kill(t.pid, number)) != 0 or t.screen.hidden:
        problems.append("signal %d: cursor hidden %s" % (number, t.screen.hidden))
t = Terminal([target], 24, 80)
t.until(is_full(24), "before it is suspended")
os.write(t.fd, b"\x1a")
t.until(lambda lines: not t.screen.hidden, "suspended")
os.waitpid(t.pid, os.WUNTRACED)
os.kill(t.pid, signal.SIGCONT)
t.until(lambda lines: t.screen.hidden and is_full(24)(lines), "continued")
if t.end(key(b"q")) != 0:
    problems.append("suspended: no clean end")
# One column is enough to live.
t = Terminal([target], 1, 1)
t.until(lambda lines: t.screen.pictures > 3, "one cell")
if t.end(key(b"q")) != 0:
    problems.append("one cell: no clean end")

# What is no ASCII, where the locale has no more; as wide as it is, where it has.
t = Terminal([target], 24, 80, LC_ALL="C")
t.until(is_full(24), "in C")
t.end(key(b"q"))
if not t.text.isascii():
    problems.append("not ASCII in the locale C: %r" % t.text)
t = Terminal([target], 24, 80, TERM="dumb")
t.until(lambda lines: t.text.count("VERDICT") > 1, "dumb")
t.end(key(b"q"))
if "\033" in t.text:
    problems.append("a dumb terminal got %r" % t.text)
t = Terminal([target], 24, 80, NO_COLOR="1")
t.until(is_full(24), "without colours")
t.end(key(b"q"))
if re.search(r"\033\[[0-9;]*m", t.text):
    problems.append("colours with NO_COLOR")
# A process that ends: its last picture stays, and nobody waits.
t = Terminal([target], 24, 80)
t.until(is_full(24), "before the end")
subject.kill()
subject.wait()
if t.end(lambda t: None) != 0 or t.screen.hidden:
    problems.append("the end of the process")
print("\n".join(problems) or "%d sites" % len(sites))
sys.exit(bool(problems))
