#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A program whose name holds line breaks and control characters: they neither steer a terminal nor begin a line,
and above all no rule in what 'tune' writes and no mapping in what jeprof reads."""
import os
import struct
import subprocess
import sys

TOOL = os.environ["TM_BUILD"] + "/tiermalloc"
NAME = "a\x1b[31m\nqz"
problems = []
os.mkdir("led", 0o700)
os.mkdir(NAME)
program = os.path.abspath(NAME + "/" + NAME)
# Without lines of a source, so that functions stand with the program's name.
subprocess.run(["strip", "-g", "-o", program, os.environ["TM_TESTS"] + "/deep_subject"], check=True)
variables = {"TIERMALLOC_DIR": os.path.abspath("led"), "TIERMALLOC_REPORT": "exit", "TIERMALLOC_LEDGER": "stack"}
done = subprocess.run([program], env=dict(os.environ, LD_PRELOAD=os.environ["TM_LIB"], **variables),
                      stdin=subprocess.DEVNULL, capture_output=True, check=False)
ledger = "led/" + os.listdir("led")[0]


def judge(what, text):
    if "\x1b" in text or any(line.startswith("qz") for line in text.split("\n")):
        problems.append("%s: %r" % (what, text[:600]))


def look(*words, **more):
    run = subprocess.run([TOOL, *words], capture_output=True, text=True, check=False, env=dict(os.environ, **more))
    judge(words[0], run.stdout + run.stderr)
    return run.stdout


judge("the library's report", done.stderr.decode())
for verb in ("report", "leaks", "frag", "explain", "symbols"):
    look(verb, ledger)
look("ls", "led")
look("doctor", program)
with open(NAME + "/x", "w", encoding="ascii") as f:
    f.write("no trace")
look("replay", NAME + "/x")
look("config", TIERMALLOC_TARGET=NAME)
rules = look("tune", ledger, "-o", "-").splitlines()
if not any("?qz" in line for line in rules):
    problems.append("no rule names the program: %r" % rules)
for line in rules:
    if not line.startswith(("#", "site=")):
        problems.append("no rule and no remark: %r" % line)
heap = subprocess.run([TOOL, "export", "--format", "heap_v2", ledger, "-o", "-"], capture_output=True, text=True,
                      check=False).stdout.partition("MAPPED_LIBRARIES:\n")[2]
if "\\012qz" not in heap or not all(" r-xp " in line for line in heap.splitlines()):
    problems.append("mappings: %r" % heap[:600])
for form in ("prometheus", "html"):
    look("export", "--format", form, ledger, "-o", "-")
# A trace names its modules.
lines = "module 0 x\x1b[31mqz\nframe 0 0 16\nstack 0 0\n".encode()
with open("odd.tmt", "wb") as f:
    f.write(b"TMTRACE1" + struct.pack("<QQQ", 1, 2, len(lines)) +
            struct.pack("<QQIIIIHBB", 1000, 1 << 20, 1, 0, 0, 64, 0, 1, 0) + lines)
if "x?[31mqz+0x10" not in look("replay", "--top", "5", "odd.tmt"):
    problems.append("replay names no module")
print("\n".join(problems))
sys.exit(bool(problems))
