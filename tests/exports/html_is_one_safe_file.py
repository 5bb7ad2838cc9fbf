#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page asks the network for nothing, lets only its own script run, carries the report whole, and
keeps back what must not be passed on; 20,000 sites stay below 5 MB, the page itself below 150 KB."""
import base64
import gzip
import hashlib
import json
import os
import re
import subprocess
import sys

from common import NAMES, SRC, expect, export, finish, path, report, same

DATA = re.compile(r'<script type="application/json" id="report"( data-encoding="gzip\+base64")?>\n(.*?)\n</script>', re.S)


def carried(page):
    packed, data = DATA.search(page).groups()
    return json.loads(gzip.decompress(base64.b64decode(data)) if packed else data)


def sha(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def base(value):
    return value and value.rsplit("/", 1)[-1]


def redacted(doc):
    doc["process"]["cmdline"] = []
    doc["process"]["ledger"] = base(doc["process"]["ledger"])
    doc["diff"].update(a=base(doc["diff"]["a"]), b=base(doc["diff"]["b"]))
    for row in doc["frames"]:
        row["file"] = base(row["file"])
    for row in doc["modules"]:
        row["path"] = base(row["path"])
    for row in doc["mappings"]:
        row["name"] = base(row["name"])
    return doc


for name in NAMES:
    page = export(path(name), "html").decode()
    shell = DATA.sub("", page)
    expect(len(shell) < 150_000, f"{name}: the page is {len(shell)} bytes")
    policy = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)"', page).group(1)
    expect(policy.startswith("default-src 'none'; "), f"{name}: policy {policy}")
    same(re.findall(r"'sha256-[^']*'", policy), [sha(re.search(rf"<{t}>(.*?)</{t}>", page, re.S).group(1)) for t in ("script", "style")],
         f"{name}: hashes of the policy")
    expect("unsafe" not in policy, f"{name}: policy {policy}")
    expect(not re.search(r"(?:src|href|url)\s*[=(:]\s*[\"']?\s*(?:https?:|//)", shell), f"{name}: names an address")
    expect(not re.search(r"\b(?:fetch|XMLHttpRequest|WebSocket|EventSource|import|eval)\s*\(|innerHTML|insertAdjacentHTML|document\.write", shell),
           f"{name}: reaches out or writes markup")
    same(carried(page), redacted(report(name)), f"{name}: what the page carries")
    plain = export(path(name), "html", "--uncompressed").decode()
    same(carried(plain), redacted(report(name)), f"{name}: what the plain page carries")
    same(plain.count("</script"), 2, f"{name}: ends of scripts")
    same(carried(export(path(name), "html", "--include-source").decode()), report(name), f"{name}: with source")
secret = export(path("server"), "html", "--uncompressed").decode()
for word in ("s3cret-t0ken", "--api-key", "/opt/llm", "src/llama.cpp", "/dev/shm"):
    expect(word not in secret, f"the page gives away '{word}'")

with open("big.json", "wb") as f:
    subprocess.run([sys.executable, os.path.join(SRC, "tests/exports/make_report.py"), "--sites", "20000", "--points", "600"],
                   stdout=f, check=True)
page = export("big.json", "html")
expect(len(page) < 5_000_000, f"20,000 sites: {len(page)} bytes")
same(len(carried(page.decode())["sites"]), 20000, "sites")
finish()
