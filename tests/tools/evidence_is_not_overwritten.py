#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No command writes over a ledger or over what it reads, takes an option for a file's name, or starts a
program whose report it could not write."""
import os
import subprocess
import sys

BUILD = os.environ["TM_BUILD"]
TOOL = BUILD + "/tiermalloc"
problems = []
for name in ("l.tm", "other.tm"):
    subprocess.run([BUILD + "/tests/tools/make_ledger", name, "20"], check=True)
os.link("l.tm", "same.bin")
os.symlink("l.tm", "link.json")


def contents():
    with open("l.tm", "rb") as a, open("other.tm", "rb") as b:
        return a.read(1 << 20), b.read(1 << 20)


def refused(words, *said):
    run = subprocess.run([TOOL, *words], capture_output=True, text=True, check=False)
    if run.returncode not in (1, 2) or not all(w in run.stderr for w in said) or "started" in run.stdout:
        problems.append("%s: status %d, '%s' '%s'" % (words, run.returncode, run.stdout[:100], run.stderr))


before = contents()
for to in ("l.tm", "other.tm", "same.bin", "link.json"):
    for words in (["export", "--format", "json", "l.tm", "-o", to], ["merge", "l.tm", "-o", to], ["merge", "-o", to, "l.tm"],
                  ["tune", "l.tm", "-o", to], ["report", "--html", to, "l.tm"], ["diff", "--html", to, "l.tm", "other.tm"],
                  ["run", "--json", to, "--", "echo", "started"], ["run", "--html", to, "--", "echo", "started"],
                  ["trace", "-o", to, "echo", "started"]):
        refused(words, "is a ledger")
if contents() != before:
    problems.append("a ledger was changed")
for verb in (["run", "--html"], ["run", "--json"]):
    refused(verb + ["--", "echo", "started"], "'--'")
    refused(verb + ["--python", "echo", "started"], "'--python'")
    refused(verb + [os.path.abspath("none") + "/x", "--", "echo", "started"], "cannot write", "No such file")
    refused(verb + [".", "--", "echo", "started"], "cannot write")
refused(["report", "--html", "--json", "l.tm"], "'--json'")
made = subprocess.run([TOOL, "merge", "l.tm", "-o", "m.json"], capture_output=True, text=True, check=False)
if "jansson" not in made.stderr:
    refused(["export", "--format", "folded", "m.json", "-o", "m.json"], "is what is read")
    refused(["merge", "m.json", "l.tm", "-o", "./m.json"], "is what is read")
    refused(["diff", "--html", "m.json", "l.tm", "m.json"], "is what is read")
    refused(["report", "--from-json", "m.json", "--html", "m.json"], "is what is read")
left = sorted(os.listdir())
if left != ["l.tm", "link.json", "m.json", "other.tm", "same.bin"]:
    problems.append("left: %s" % left)
print("\n".join(problems))
sys.exit(bool(problems))
