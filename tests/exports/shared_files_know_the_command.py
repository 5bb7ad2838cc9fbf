#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The dashboard asks only for metrics and labels that are exported, and the completion offers every
verb of --help and every format."""
import json
import os
import re
import subprocess

from common import SRC, TOOL, expect, export, finish, path, same

text = export(path("server"), "prometheus").decode()
metrics = set(re.findall(r"^# TYPE (\S+)", text, flags=re.M))
labels = set(re.findall(r'(\w+)="', text))
with open(os.path.join(SRC, "packaging/grafana-dashboard.json"), encoding="utf-8") as f:
    board = json.load(f)
asked = [t["expr"] for p in board["panels"] for t in p["targets"]] + [v["definition"] for v in board["templating"]["list"] if "definition" in v]
expect(len(asked) > 10, "few questions")
for question in asked:
    for name in re.findall(r"tiermalloc_\w+", question):
        expect(name in metrics, f"the dashboard asks for {name}")
    for names in re.findall(r"by \(([^)]*)\)", question):
        expect(set(names.split(", ")) <= labels, f"the dashboard asks for labels {names}")
same(len({p["id"] for p in board["panels"]}), len(board["panels"]), "numbers of panels")

script = os.path.join(SRC, "packaging/tiermalloc.bash-completion")


def complete(*words):
    line = " ".join(f"'{w}'" for w in words)
    run = subprocess.run(["bash", "-c", f". {script}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _tiermalloc; "
                          "printf '%s\\n' \"${COMPREPLY[@]}\""], capture_output=True, text=True)
    expect(not run.stderr, f"completion of {words}: {run.stderr}")
    return set(run.stdout.split())


shown = subprocess.run([TOOL, "--help"], capture_output=True, text=True, check=True).stdout
verbs = set(re.findall(r"^  tiermalloc (\w+)", shown, flags=re.M))
expect(verbs <= complete("tiermalloc", ""), f"verbs not offered: {verbs - complete('tiermalloc', '')}")
formats = complete("tiermalloc", "export", "--format", "")
for form in formats:
    export(path("server"), form)
same(complete("tiermalloc", "exp"), {"export", "explain"}, "verbs that begin with 'exp'")
expect("--listen" in complete("tiermalloc", "serve", "--l"), "options of serve")
open("some.tm", "w", encoding="utf-8").close()
expect("some.tm" in complete("tiermalloc", "report", "so"), "files")
finish()
