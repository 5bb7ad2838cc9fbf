#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A program that loses device, stream-ordered and pinned memory is told of each of them as growing, at its
line and with its rate, while it runs and after it was killed; its cache, its work memory and its weights are
not. In both modes of the hooks."""
import glob
import json
import os
import subprocess
import sys
import time

TOOL = os.environ["TM_BUILD"] + "/tiermalloc"
SUBJECT = os.environ["TM_TESTS"] + "/device_leaks_subject"
SOURCE = os.environ["TM_SRC"] + "/tests/cuda/device_leaks_subject.c"
LOST = {"lose_device": 64 << 10, "lose_async": 96 << 10, "lose_pinned": 8 << 10}
with open(os.environ["TM_BUILD"] + "/config.h", encoding="utf-8") as config:
    if "TM_HAVE_CUDA 1" not in config.read():
        print("built without the CUDA hooks")
        sys.exit(77)
problems = []


def look(which):
    done = subprocess.run([TOOL, "leaks", "--json", str(which)], capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout)


def rows(document):
    found = {}
    for device in document["gpu"]:
        for site in device["sites"]:
            stack = document["stacks"][site["stack"]]["frames"] if site["stack"] is not None else []
            names = [document["frames"][f]["fn"] for f in stack]
            name = next((n for n in names if n in LOST or n in ("fill_cache", "work", "load")), None)
            if name:
                frame = next(document["frames"][f] for f in stack if document["frames"][f]["fn"] == name)
                found[name] = (site, frame)
    return found


def wrong(status, document):
    found, text = rows(document), []
    for name in LOST:
        if name not in found or not found[name][0]["growing"]:
            text.append("%s is not growing: %s" % (name, found.get(name, (None,))[0]))
            continue
        line = open(SOURCE, encoding="utf-8").read().split("\n")[found[name][1]["line"] - 1]
        if "leaks: %s" % name[5:] not in line:
            text.append("%s is told at '%s'" % (name, line))
    text += ["%s is growing: %s" % (name, found[name][0]) for name in found if name not in LOST and
             found[name][0]["growing"]]
    if status != 3 or document["verdict"]["growing"] < len(LOST):
        text.append("status %d, verdict %s" % (status, document["verdict"]["text"]))
    return text


for mode in ("observe", "pool"):
    directory = "ledgers-" + mode
    env = dict(os.environ, LD_PRELOAD=os.environ["TM_LIB"], TIERMALLOC_DIR=directory, TIERMALLOC_CUDA=mode,
               TIERMALLOC_LEAK_WINDOW_MS="150")
    run = subprocess.Popen([SUBJECT], env=env, stdout=subprocess.DEVNULL)
    try:
        end = time.time() + 110
        problem = ["no report"]
        while problem and time.time() < end and run.poll() is None:
            time.sleep(2)
            if not glob.glob(directory + "/*.tm"):
                continue
            status, document = look(run.pid)
            problem = wrong(status, document) if status in (0, 3) else ["status %d" % status]
    finally:
        run.kill()
        run.wait()
    problems += ["%s, running: %s" % (mode, p) for p in problem]
    path, = glob.glob(directory + "/*.tm")
    status, document = look(path)
    problems += ["%s, killed: %s" % (mode, p) for p in wrong(status, document)]
    for name, (site, _) in sorted(rows(document).items()):
        print("%-8s %-12s %5d blocks of %7d, %s/h%s" % (mode, name, site["live_objs"], site["alloc_objs"],
                                                       site["growth_bytes_per_h"], " growing" if site["growing"] else ""))
    text = subprocess.run([TOOL, "leaks", path], capture_output=True, text=True, check=False).stdout
    if text.count("GROWING +") < len(LOST):
        problems.append("the text has too few: " + text)
for problem in problems:
    print("PROBLEM " + problem)
sys.exit(1 if problems else 0)
