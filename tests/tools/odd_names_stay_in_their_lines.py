#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A program whose name holds line breaks and control characters: they neither steer a terminal nor begin a line,
and above all no rule in what 'tune' writes and no mapping in what jeprof reads. Files of rules, suppressions and
models that hold no text: what messages quote of them is printable."""
import os
import random
import re
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
# Files of other bytes than text: what is quoted of them is printable.
odd = random.Random(4).randbytes(4000).replace(b"\0", b"x") + b"\n\xff\xe9\x9b=x -> tier=session\n"
with open("bytes", "wb") as f:
    f.write(odd)
PRINTABLE = re.compile(rb"[\n -~]*")
QUOTED = rb"\xff\xe9\x9b"
for variable in ("TIERMALLOC_RULES", "TIERMALLOC_PROFILE"):
    run = subprocess.run(["true"], env=dict(os.environ, LD_PRELOAD=os.environ["TM_LIB"], **{variable: "bytes"}),
                         capture_output=True, check=False)
    if run.stderr.count(b"tiermalloc: bytes:") != 11 or not PRINTABLE.fullmatch(run.stderr):
        problems.append("%s of bytes: %r" % (variable, run.stderr[:600]))
with open("bytes", "wb") as f:
    f.write(odd[-30:] + b"module=q\xff\xe9\x9b -> tier=session\n")
for words in (["replay", "--rules", "bytes", "odd.tmt"], ["leaks", "--suppressions", "bytes", ledger]):
    run = subprocess.run([TOOL, *words], capture_output=True, check=False)
    if QUOTED not in run.stderr or not PRINTABLE.fullmatch(run.stderr + run.stdout) or \
            (words[0] == "replay" and QUOTED not in run.stdout):
        problems.append("%s with a file of bytes: %r" % (words[0], run.stderr[:600] + run.stdout[:600]))
with open("bytes", "wb") as f:
    f.write(b"GGUF\3\0\0\0" + struct.pack("<QQQ", 0, 1, 3) + b"\xff\xe9\x9b" + struct.pack("<I", 77) + bytes(64))
run = subprocess.run([os.environ["TM_BUILD"] + "/yi-coder-run", "info", "bytes"], capture_output=True, check=False)
if run.returncode == 0 or not PRINTABLE.fullmatch(run.stderr):
    problems.append("a model of bytes: %r" % run.stderr[:600])
print("\n".join(problems))
sys.exit(bool(problems))
