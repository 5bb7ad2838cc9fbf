#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# serial: yes
"""The hunts of tiermalloc(7) run as they stand there, and print what stands there but for figures.

The page's windows suit the machine that it was written on. Here their length is what gives a run about
as many of them as there: a run with far more or fewer is no example of what the page says, and is done
again with a length that fits how long it took.
"""
import os
import re
import subprocess
import sys

BUILD = os.environ["TM_BUILD"]
# A folder of its own: where others' ledgers lie, those of ended processes make room for them.
os.mkdir("ledgers", 0o700)
env = dict(os.environ, PATH=BUILD + ":" + os.environ["PATH"], TIERMALLOC_DIR=os.path.abspath("ledgers"))
problems, seen = [], 0
WINDOWS, WINDOWS_WANTED = (70, 180), 110


def plain(line):
    """Without what may differ: figures with their units, names of sites, hosts, widths of columns."""
    line = re.sub(r"\bs:[0-9a-f]+|\b[0-9a-f]{40}\b", "#", line)
    line = re.sub(r"\(host \S+\)", "(host)", line)
    line = re.sub(r"(?<!\w)[+-]?[0-9][0-9.]*(e[+-]?[0-9]+)?( ?[KMGT]iB| B\b|%|ms|s|m[0-9]+s)?", "#", line)
    return re.sub(r"\s+", " ", line).strip()


def split(block):
    """Commands with what follows them; a file's text follows 'cat FILE'."""
    for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
        command, _, output = part.partition("\n")
        while command.endswith("\\"):
            more, _, output = output.partition("\n")
            command = command[:-1] + more
        yield command, output


def run(command):
    """The command's end, after a run whose windows are of the page's number, if it counts windows."""
    while True:
        done = subprocess.run(["sh", "-c", command], env=env, capture_output=True, text=True, check=False)
        window = int(env.get("TIERMALLOC_LEAK_WINDOW_MS", "0"))
        told = re.search(r"^windows (\d+) of ", done.stdout + done.stderr, flags=re.M)
        if not window or not told or WINDOWS[0] <= int(told.group(1)) <= WINDOWS[1]:
            return done
        env["TIERMALLOC_LEAK_WINDOW_MS"] = str(max(20, window * int(told.group(1)) // WINDOWS_WANTED))


with open(os.environ["TM_SRC"] + "/man/tiermalloc.7", encoding="utf-8") as f:
    page = f.read().replace("\\e", "\\")
for title, section in re.findall(r"^\.Ss (A \w+ hunt)\n(.*?)(?=^\.S[hs] )", page, flags=re.M | re.S):
    block = re.search(r"^\.Bd -literal\n(.*?)^\.Ed", section, flags=re.M | re.S).group(1)
    for command, wanted in split(block):
        if command.startswith("cat "):
            with open(command[4:], "w", encoding="utf-8") as f:
                f.write(wanted)
            continue
        if command.startswith("export "):
            name, _, value = command[7:].partition("=")
            env[name] = value
            continue
        done = run(command)
        if done.returncode:
            problems.append("%s: status %d of %s" % (title, done.returncode, command))
        lines = [plain(line) for line in (done.stdout + done.stderr).splitlines()]
        at = 0
        for line in filter(None, map(plain, wanted.splitlines())):
            seen += 1
            # "N watched" and the like may follow; what the page leaves out may stand between.
            found = next((i for i in range(at, len(lines)) if lines[i].startswith(line)), None)
            if found is None:
                problems.append("%s: no line '%s' of %s in\n%s" % (title, line, command,
                                                                   "\n".join(lines[at:at + 30])))
                break
            at = found + 1
    for name in ("TIERMALLOC_LEAK_WINDOW_MS",):
        env.pop(name, None)
print("%d lines" % seen)
print("\n".join(problems))
sys.exit(bool(problems) or seen < 25)
