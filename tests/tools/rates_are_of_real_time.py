#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Windows that take longer than was asked for change no rate: growth is told by the time they took, and
ages are. Windows of 1 ms can only be longer: the helper looks a few times a second."""
import json
import os
import subprocess
import sys
import time

TOOL = os.environ["TM_BUILD"] + "/tiermalloc"
env = dict(os.environ, LD_PRELOAD=os.environ["TM_LIB"], TIERMALLOC_DIR=os.getcwd() + "/ledgers",
           TIERMALLOC_LEAK_WINDOW_MS="1")


def tool(*words):
    return subprocess.run([TOOL, *map(str, words)], capture_output=True, text=True, check=False).stdout


with subprocess.Popen([os.environ["TM_TESTS"] + "/leaks_subject", "reachable"], env=env) as run:
    begun = time.monotonic()
    try:
        leak = None
        while leak is None and time.monotonic() < begun + 100:
            time.sleep(2)
            document = json.loads(tool("leaks", run.pid, "--no-scan", "--json") or "null")
            leak = next((k for k in document["leaks"] if k["class"] == "growing"), None) if document else None
        assert leak, "no leak was found"
        capture = document["capture"]
        seconds = (int(capture["t1_unix_ns"]) - int(capture["t0_unix_ns"])) / 1e9
        site = next(s for s in document["sites"] if s["id"] == leak["site"])
        rate = leak["live_bytes"] / seconds * 3600
        print("%.1f s, %d windows, %.0f bytes an hour, said are %.0f" % (
            seconds, document["capture"]["windows"], rate, leak["slope_bytes_per_h"]))
        assert rate / 3 < leak["slope_bytes_per_h"] < rate * 3
        assert 0 < site["growth_bytes"] <= site["live_bytes"], "what became old is told"
        folded = tool("export", "--format", "folded", "--view", "growth", run.pid, "-o", "-")
        assert "remember" in folded, folded
        # What was born in the first half of the run is not recent, and was not freed.
        recent = json.loads(tool("report", run.pid, "--since", "%dms" % (seconds * 500), "--json"))
        site = next(s for s in recent["sites"] if s["id"] == leak["site"])
        print("of %d objects %d are recent" % (site["alloc_objs"], site["live_objs"]))
        assert site["live_objs"] < site["alloc_objs"]
        assert site["free_objs"] == 0, "what is older was not freed"
        held = subprocess.run([TOOL, "report", str(run.pid), "--fail-on", "growth>1"], capture_output=True, text=True,
                              check=False)
        assert held.returncode == 3 and "B/h" in held.stderr, held.stderr
    finally:
        run.kill()
sys.exit(0)
