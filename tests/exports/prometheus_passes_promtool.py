#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""promtool accepts the metrics and finds nothing to improve; few series, whatever the number of sites."""
import os
import re
import shutil
import subprocess

from common import NAMES, cached, expect, export, finish, path, report, same


def fetch(folder):
    """From the distribution's package, unpacked and not installed: installing it starts a server."""
    subprocess.run(["apt-get", "-qq", "download", "prometheus"], cwd=folder, check=True, capture_output=True, timeout=100)
    package = next(n for n in os.listdir(folder) if n.startswith("prometheus_"))
    subprocess.run(["dpkg-deb", "-x", package, "prometheus"], cwd=folder, check=True, capture_output=True)
    os.remove(os.path.join(folder, package))
    shutil.move(os.path.join(folder, "prometheus/usr/bin/promtool"), os.path.join(folder, "promtool"))
    shutil.rmtree(os.path.join(folder, "prometheus"))


promtool = shutil.which("promtool") or cached("promtool", fetch)
for name in NAMES:
    text = export(path(name), "prometheus")
    run = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True)
    expect(run.returncode == 0 and not run.stderr and not run.stdout, f"{name}: {run.stdout.decode()}{run.stderr.decode()}")
    rows = [l for l in text.decode().splitlines() if not l.startswith("#")]
    keys = [r.rpartition(" ")[0] for r in rows]
    same(len(keys), len(set(keys)), f"{name}: series are told apart")
    expect(len(rows) < 120, f"{name}: {len(rows)} series")
doc = report("server")
text = export(path("server"), "prometheus", "--top-sites", "7").decode()
same(len(re.findall(r"^tiermalloc_site_live_bytes\{", text, flags=re.M)), 7, "series of sites")
expect(subprocess.run([promtool, "check", "metrics"], input=text.encode(), capture_output=True).returncode == 0, "with sites")
parts = dict(re.findall(r'^tiermalloc_balance_bytes\{.*part="(\w+)"\} (-?\d+)$', text, flags=re.M))
same(sum(map(int, parts.values())), doc["balance"]["rss_bytes"], "the parts' sum")
finish()
