#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A report that is read and written again is the same to the byte, whatever its texts and numbers
hold; a text that is no report costs one line that names file and key, and status 2."""
import json
import subprocess

from common import NAMES, REPORTS, TOOL, expect, export, finish, path, report, same

for name in NAMES:
    with open(path(name), "rb") as f:
        same(export(path(name), "json"), f.read(), name)

# Keys that are not there are unknown, keys that are not known are skipped.
with open("least.json", "w", encoding="utf-8") as f:
    f.write('  {"schema": "tiermalloc.report/1", "later": {"x": [1, {}]}, "sites": [{"id": "s:1"}]}')
least = json.loads(export("least.json", "json"))
same(least["balance"]["rss_bytes"], None, "an unknown number")
same(least["sites"][0]["tier"], None, "an unknown word")
same(least["blind_spots"], [], "an unknown list")

# Numbers from 2^53 on are strings, in both directions.
big = report("server")
big["sites"][0]["alloc_bytes"] = str(2**63 + 5)
big["sites"][1]["alloc_bytes"] = 2**60
big["balance"]["residual"] = str(-(2**60))
with open("big.json", "w", encoding="utf-8") as f:
    json.dump(big, f)
back = json.loads(export("big.json", "json"))
same(back["sites"][0]["alloc_bytes"], str(2**63 + 5), "a number of 64 bits")
same(back["sites"][1]["alloc_bytes"], str(2**60), "a number of 61 bits")
same(back["balance"]["residual"], str(-(2**60)), "a negative number of 61 bits")


def refused(text, word):
    with open("bad.json", "w", encoding="utf-8") as f:
        f.write(text if isinstance(text, str) else json.dumps(text))
    run = subprocess.run([TOOL, "export", "--format", "json", "bad.json", "-o", "-"], capture_output=True, text=True)
    lines = run.stderr.splitlines()
    expect(run.returncode == 2 and not run.stdout and len(lines) == 1 and "'bad.json'" in lines[0] and word in lines[0],
           f"{word}: status {run.returncode}, {run.stderr!r}")


def spoilt(change):
    doc = report("server")
    change(doc)
    return doc


refused("{", "line 1")
refused('{"schema": "tiermalloc.report/2"}', "schema")
refused("{" * 100000, "line 1")
refused('{"a":' * 5000, "line 1")
for key, change in (
        ("sites[2].live_bytes", lambda d: d["sites"][2].update(live_bytes="many")),
        ("sites[2].live_bytes", lambda d: d["sites"][2].update(live_bytes=-1)),
        ("sites[0].tier", lambda d: d["sites"][0].update(tier="fast")),
        ("sites[1].stack", lambda d: d["sites"][1].update(stack=10**6)),
        ("sites[1].stack", lambda d: d["sites"][1].update(stack=2**32)),
        ("sites[3].id", lambda d: d["sites"][3].update(id=None)),
        ("frames[0].module", lambda d: d["frames"][0].update(module=99)),
        ("frames[0].addr", lambda d: d["frames"][0].update(addr="0xzz")),
        ("stacks[1].frames[0]", lambda d: d["stacks"][1]["frames"].__setitem__(0, 10**7)),
        ("modules[1].id", lambda d: d["modules"][1].update(id=0)),
        ("timeline.t[1]", lambda d: d["timeline"]["t"].__setitem__(1, 0)),
        ("timeline.series.rss", lambda d: d["timeline"]["series"]["rss"].pop()),
        ("leaks[0].site", lambda d: d["leaks"][0].update(site="s:none")),
        ("leaks[0].evidence[0]", lambda d: d["leaks"][0].update(evidence=[3])),
        ("process.cmdline", lambda d: d["process"].update(cmdline="sh")),
        ("hugepages.pages[0].huge", lambda d: d["hugepages"]["pages"][0].update(huge=1)),
        ("balance", lambda d: d.update(balance=[]))):
    refused(spoilt(change), key)
missing = subprocess.run([TOOL, "export", "--format", "json", REPORTS + "/none", "-o", "-"], capture_output=True, text=True)
expect(missing.returncode == 2 and len(missing.stderr.splitlines()) == 1, "a missing file")
finish()
