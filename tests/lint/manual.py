#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The pages do not drift: every variable, symbol, command and option is described."""
import os
import re
import subprocess

from common import BUILD, SRC, files, finish, read, table

PAGES = ["tiermalloc.1", "yi-coder-run.1", "tiermalloc.3", "tiermalloc-rules.5", "tiermalloc-tunables.5",
         "tiermalloc.7"]
SECTIONS_1 = ["ENVIRONMENT", "EXIT STATUS", "FILES", "EXAMPLES", "DIAGNOSTICS", "BUGS"]
problems, seen = [], 0


def page(name):
    return read(f"man/{name}") if os.path.exists(os.path.join(SRC, "man", name)) else ""


def text(name):
    """The page as words: mdoc's escapes undone as far as names need it."""
    return page(name).replace("\\-", "-").replace("\\&", "").replace("\\(em", "-")


for name in PAGES:
    if not page(name):
        problems.append(f"man/{name}: missing")
        continue
    seen += 1
    wanted = SECTIONS_1 if name in ("tiermalloc.1", "yi-coder-run.1") else ["EXAMPLES"]
    problems += [f"man/{name}: no section {s}" for s in wanted
                 if not re.search(rf'^\.Sh {s}$', page(name), flags=re.M)]

for row in table("tunables") or []:
    if not re.search(rf"\b{row[0]}\b", text("tiermalloc-tunables.5")):
        problems.append(f"man/tiermalloc-tunables.5: {row[0]} is not described")
for row in table("symbols") or []:
    if row[2] != "CXX" and not row[0].startswith("__") and not re.search(rf"\b{row[0]}\b", text("tiermalloc.7")):
        problems.append(f"man/tiermalloc.7: {row[0]} is not described")

tool = os.path.join(BUILD, "tiermalloc")
generated = subprocess.run([tool, "config", "--man"], capture_output=True, text=True)
with open(os.path.join(BUILD, "config.h"), encoding="utf-8") as f:
    usual = "TM_HAVE_CUDA 1" in f.read()  # the page is that of a build with all parts
if usual and generated.returncode == 0 and generated.stdout and generated.stdout != page("tiermalloc-tunables.5"):
    problems.append("man/tiermalloc-tunables.5: differs from 'tiermalloc config --man'")

public = re.sub(r"/\*.*?\*/", "", read("shim/tiermalloc.h"), flags=re.S)
for name in sorted(set(re.findall(r"\b(tiermalloc_\w+)\s*\(", public))):
    if name not in text("tiermalloc.3"):
        problems.append(f"man/tiermalloc.3: {name} is not described")


def options(sources):
    """Long options and getopt letters that the sources of a program compare against."""
    found = set()
    for source in sources:
        code = re.sub(r"/\*.*?\*/", "", read(source), flags=re.S)
        found |= set(re.findall(r'"(--[a-z][a-z-]+)=?"', code))
        found |= {"--" + n for n in re.findall(r'\{\s*"([a-z][a-z-]+)",\s*(?:no|required|optional)_argument', code)}
    return found


tools = [f for f in files(".c", under="tools/") if not f.startswith("tools/runner/")]
runner = files(".c", under="tools/runner/")
for sources, name in ((tools, "tiermalloc.1"), (runner, "yi-coder-run.1")):
    flat = re.sub(r"^\.(?:It )?Fl Fl ", "--", text(name), flags=re.M)
    flat = re.sub(r"\bFl -?-?", "--", re.sub(r"\bFl Fl ", "Fl ", flat)).replace("---", "--").replace("-- ", "--")
    problems += [f"man/{name}: option {o} is not described" for o in sorted(options(sources)) if o not in flat]
for source in tools:
    if m := re.fullmatch(r"tools/cmd/cmd_(\w+)\.c", source):
        verb = m.group(1)
        if not re.search(rf"\b(Cm|Ic|Nm tiermalloc) {verb}\b", page("tiermalloc.1")):
            problems.append(f"man/tiermalloc.1: command '{verb}' is not described")
finish(problems, seen, "pages")
