#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# needs: xz
# timeout: 120
"""The rules about engines in tiermalloc-rules(5) and in example.rules name modules that the recorded engines
have and place their blocks no worse than the policies alone do, each by itself."""
import os
import re
import subprocess
import sys

SRC, TOOL = os.environ["TM_SRC"], os.environ["TM_BUILD"] + "/tiermalloc"
# What a rule's text begins with, its tier, and the trace that it is about.
ABOUT = [
    (r"module=libggml-base", "persistent", "llama-nommap"),
    (r"module=onnxruntime_pybind11_state", "session", "ort"),
    (r"module=onnxruntime_pybind11_state", "temporary", "ort-no-arena"),
    (r"module=libc10", "persistent", "torch"),
    (r"module=libc10", "temporary", "torch"),
]
problems = []
alone = {}


def right(trace, *words):
    """Shares of bytes in their right tier: of all, of those of serving; and the whole text."""
    path = f"{SRC}/tests/data/traces/{trace}.tmt.xz"
    done = subprocess.run([TOOL, "replay", *words, path], capture_output=True, text=True, check=True)
    m = re.search(r"right tier +([\d.]+)% of bytes, ([\d.]+)% of those", done.stdout)
    return float(m.group(1)), float(m.group(2)), done.stdout


for name in ("man/tiermalloc-rules.5", "packaging/example.rules"):
    with open(f"{SRC}/{name}", encoding="utf-8") as f:
        rules = re.findall(r"(?:^#?|')((?:module|symbol)=\S+[^'\n]* -> [^'\n;]*)", f.read(), flags=re.M)
    for prefix, tier, trace in ABOUT:
        found = [rule for rule in rules if rule.startswith(prefix) and f"tier={tier}" in rule]
        if not found:
            problems.append(f"{name}: no rule {prefix}... -> tier={tier}")
            continue
        if trace not in alone:
            alone[trace] = right(trace)
        have = right(trace, "--rules", found[0])
        print(name, found[0], alone[trace][:2], have[:2])
        if "decided nothing" in have[2] or not re.search(r"^decided by .*rule [\d.]*[1-9]", have[2], flags=re.M):
            problems.append(f"{name}: '{found[0]}' decides nothing in {trace}")
        elif have[0] < alone[trace][0] - .1 or have[1] < alone[trace][1] - .1:
            problems.append(f"{name}: '{found[0]}' is wrong about {trace}: {have[:2]}, without it {alone[trace][:2]}")
print("\n".join(problems))
sys.exit(bool(problems))
