#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every example of the pages runs: shell lines, C and Python, as they stand there."""
import os
import re
import subprocess
import sys

SRC, BUILD, LIB = os.environ["TM_SRC"], os.environ["TM_BUILD"], os.environ["TM_LIB"]
problems, ran = [], 0
env = dict(os.environ, PATH=BUILD + ":" + os.environ["PATH"])
# What the examples call as the reader's own program.
with open("serve.sh", "w", encoding="utf-8") as f:
    f.write("#!/bin/sh\npython3 -c 'print(1)'\n")
os.chmod("serve.sh", 0o755)


def blocks(page):
    """The displayed examples, unescaped."""
    section = re.search(r"^\.Sh EXAMPLES\n(.*?)(?=^\.Sh )", page, flags=re.M | re.S)
    for m in re.finditer(r"^\.Bd -literal.*?\n(.*?)^\.Ed", section.group(1) if section else "", flags=re.M | re.S):
        yield m.group(1).replace("\\e", "\\")


def run(name, text, command):
    global ran
    ran += 1
    done = subprocess.run(command, input=text, env=env, capture_output=True, text=True)
    if done.returncode:
        problems.append(f"{name}: status {done.returncode} of\n{text}{done.stdout}{done.stderr}")
    elif "tiermalloc:" in done.stderr:
        problems.append(f"{name}: complains\n{text}{done.stderr}")


for name in ("tiermalloc.1", "tiermalloc.3", "tiermalloc-tunables.5", "tiermalloc-rules.5", "tiermalloc.7", "yi-coder-run.1"):
    with open(f"{SRC}/man/{name}", encoding="utf-8") as f:
        page = f.read()
    for text in blocks(page):
        if text.startswith("#include"):
            with open("example.c", "w", encoding="utf-8") as f:
                f.write(text.replace("\\n\"", "\\n\""))
            run(name, "", ["cc", "-Wall", "-Werror", f"-I{SRC}/shim", "example.c", "-o", "example"])
            run(name, "", ["./example"])
            run(name, "", ["env", f"LD_PRELOAD={LIB}", "./example"])
        elif text.startswith("import"):
            run(name, text, ["python3", "-"])
            run(name, text, ["env", f"LD_PRELOAD={LIB}", "python3", "-"])
        elif "LD_PRELOAD" in text:
            run(name, text.replace("/usr/local/lib/libtiermalloc.so", LIB), ["sh", "-e"])
        else:
            run(name, text, ["sh", "-e"])
for p in problems:
    print(p)
if ran < 8:
    print(f"only {ran} examples found")
sys.exit(1 if problems or ran < 8 else 0)
