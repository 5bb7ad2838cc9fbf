#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Each site of a program has the stack that the program's own unwinder sees there, through threads,
# signal handlers, realigned frames and libraries that are unloaded; and build ids are the files'.
import os, re, shutil, subprocess, sys

sys.path.insert(0, os.path.join(os.environ["TM_SRC"], "tests/tools"))
from ledger_file import Ledger

tests = os.environ["TM_TESTS"]


def run(mode):
    env = dict(os.environ, LD_PRELOAD=os.environ["TM_LIB"], TIERMALLOC_DIR=os.getcwd() + "/" + mode,
               TIERMALLOC_LEDGER=mode)
    p = subprocess.Popen([tests + "/stacks_subject"], env=env, stdout=subprocess.PIPE, text=True)
    out = p.communicate()[0]
    assert p.returncode == 0, p.returncode
    name, = [f for f in os.listdir(mode) if f.startswith("%d-" % p.pid)]
    return out, Ledger(mode + "/" + name)


def look(mode):
    out, ledger = run(mode)
    stacks = ledger.stacks()
    assert ledger.header["stacks_lost"] == 0
    for line in out.splitlines():
        name, code, *frames = line.split()
        code, frames = int(code, 16), [int(f, 16) for f in frames]
        here = [s for s in stacks if code <= s[2][0] < code + 200]
        assert here, "%s: no stack begins in this function" % name
        if name == "plugin":
            module, = [m for m in ledger.modules() if "libstacks_plugin" in m["path"]]
            assert module["begin"] <= code < module["end"]
            assert module["unloaded_ms"] >= module["loaded_ms"] > 0, "it is not told that it went"
            continue
        # The frame of the function itself is at another call than its allocation.
        same = [s for s in here if s[2][1:] == frames]
        assert same, "%s: %s\nis none of\n%s" % (name, [hex(f) for f in frames], "\n".join(str([hex(f) for f in s[2][1:]]) for s in here))
        assert not same[0][3]["truncated"], name
        assert same[0][0] == same[0][2][0], "the first frame is the site"
    keys = [(s[0], s[1]) for s in stacks]
    if mode == "on":
        assert len(keys) == len(set(keys)), "a key was captured twice"
        assert all(s[3]["samples"] == 1 for s in stacks)
    else:
        assert sum(s[3]["samples"] for s in stacks) > len(stacks), "nothing was sampled"
    for m in ledger.modules():
        if not os.path.exists(m["path"]):
            continue
        note = subprocess.run(["readelf", "-n", m["path"]], capture_output=True, text=True).stdout
        want = re.search(r"Build ID: ([0-9a-f]+)", note)
        assert m["build_id"] == (want.group(1) if want else ""), m["path"]
    paths = [m["path"] for m in ledger.modules()]
    assert any(p.endswith("/stacks_subject") for p in paths) and any("libc.so" in p for p in paths), paths
    assert len(paths) == len(set(paths)), "an object has two records: %s" % paths
    # no module is noted that no stack passes
    assert ledger.header["boot_id"] != b"\0" * 16 and ledger.header["pid_namespace"] == os.stat("/proc/self/ns/pid").st_ino


def look_relative():
    """A plugin that is opened by a relative name is found by its whole one, also from another folder."""
    shutil.copy(tests + "/libstacks_plugin.so", "plugin.so")
    code = "import ctypes, os; p = ctypes.CDLL('./plugin.so'); os.chdir('/'); p.plugin_allocates(1 << 20)"
    env = dict(os.environ, LD_PRELOAD=os.environ["TM_LIB"], TIERMALLOC_DIR=os.getcwd() + "/relative")
    subprocess.run([sys.executable, "-c", code], env=env, check=True)
    names = ["relative/" + f for f in os.listdir("relative")]
    paths = [m["path"] for f in names for m in Ledger(f).modules()]
    assert os.getcwd() + "/plugin.so" in paths, paths


for m in ("on", "stack", "deep"):
    look(m)
look_relative()
