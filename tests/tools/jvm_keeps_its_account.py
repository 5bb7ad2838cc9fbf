#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# needs: java javac
"""A Java virtual machine runs as without the library: 200 threads, a small heap and so much collecting, two
collectors, and a leak scan that stops all its threads. What its native code allocated is told by its own
functions, the objects that a Java program keeps to the number.
Failure: a crash, another output, native frames lost behind compiled ones."""
import glob
import json
import os
import re
import subprocess

TOOL = os.environ["TM_BUILD"] + "/tiermalloc"
KEPT = 64
subprocess.run(["javac", "-d", ".", os.environ["TM_SRC"] + "/tests/tools/JvmSubject.java"], check=True)


def java(*options, **env):
    return subprocess.Popen(["java", "-Xmx64m", "-cp", ".", *options, "JvmSubject"], env=dict(os.environ, **env),
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def preloaded(directory, *options):
    return java(*options, LD_PRELOAD=os.environ["TM_LIB"], TIERMALLOC_DIR=directory, TIERMALLOC_LEAK_WINDOW_MS="500")


def check(ledger):
    done = subprocess.run([TOOL, "report", "--json", ledger], capture_output=True, text=True)
    assert done.returncode == 0, done
    doc = json.loads(done.stdout)

    def stack_of(site):
        return [] if site["stack"] is None else [doc["frames"][f] for f in doc["stacks"][site["stack"]]["frames"]]

    def is_in(frame, module):
        return frame["module"] is not None and doc["modules"][frame["module"]]["path"].endswith("/" + module)

    machine = [s for s in doc["sites"] if any(is_in(f, "libjvm.so") for f in stack_of(s))]
    assert len(machine) > 50, len(machine)
    kept = [s["live_objs"] for s in doc["sites"]
            if any("Deflater_init" in (f["fn"] or "") and is_in(f, "libzip.so") for f in stack_of(s))]
    assert KEPT in kept and all(n % KEPT == 0 for n in kept), kept


plain, error = java().communicate("")
assert re.fullmatch(r"sum -?\d+ kept %d\n" % KEPT, plain), (plain, error)
for collector in ("-XX:+UseSerialGC", "-XX:+UseG1GC"):
    directory = "ledgers" + collector[5:]
    run = preloaded(directory, collector)
    first = run.stdout.readline()
    ledger, = glob.glob(directory + "/*.tm")
    if collector.endswith("G1GC"):
        done = subprocess.run([TOOL, "leaks", "--json", str(run.pid)], env=dict(os.environ, TIERMALLOC_DIR=directory),
                              capture_output=True, text=True)
        assert done.returncode in (0, 3, 4) and json.loads(done.stdout)["schema"], done
    rest, error = run.communicate("")
    assert run.returncode == 0 and first + rest == plain and not error, (collector, run.returncode, first, rest, error)
    check(ledger)
