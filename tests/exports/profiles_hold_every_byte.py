#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every format of stacks sums to what the report says, site by site, whatever names hold."""
import json

from common import NAMES, export, expect, finish, number, path, report, same, total

VIEWS = {"live": "live_bytes", "growth": "growth_bytes", "alloc": "alloc_bytes", "temporary": "temporary_objs",
         "pinned": "frag_pinned_bytes", "unreachable": "unreachable_bytes"}


def label(doc, frame):
    f = doc["frames"][frame]
    if f["fn"] is not None:
        return f["fn"]
    if f["module"] is None:
        return f["addr"] or "(unknown)"
    m = doc["modules"][f["module"]]
    return f"{m['path'].rsplit('/', 1)[-1]}+0x{int(f['addr'], 16) - int(m['base'], 16) + number(m['offset']):x}"


def names(doc, site):
    """Outermost first."""
    if site["stack"] is None or not doc["stacks"][site["stack"]]["frames"]:
        return ["(other sites)"]
    return [label(doc, f) for f in reversed(doc["stacks"][site["stack"]]["frames"])]


def check_folded(name, doc):
    for view, key in VIEWS.items():
        lines = export(path(name), "folded", "--view", view).decode().split("\n")[:-1]
        sites = [s for s in doc["sites"] if number(s[key])]
        same(len(lines), len(sites), f"{name}: lines of {view}")
        for line, site in zip(lines, sites):
            stack, _, weight = line.rpartition(" ")
            same(int(weight), number(site[key]), f"{name}: {view} of {site['id']}")
            want = [n.replace(";", ":").replace("\n", " ") for n in names(doc, site)]
            got = [f.removesuffix("_[py]").removesuffix("_[i]") for f in stack.split(";")]
            same(got, want, f"{name}: folded stack of {site['id']}")


def check_speedscope(name, doc):
    file = json.loads(export(path(name), "speedscope"))
    frames = [f["name"] for f in file["shared"]["frames"]]
    for profile, (view, key) in zip(file["profiles"], VIEWS.items()):
        sites = [s for s in doc["sites"] if number(s[key])]
        same(profile["weights"], [number(s[key]) for s in sites], f"{name}: weights of {view}")
        same([[frames[i] for i in s] for s in profile["samples"]], [names(doc, s) for s in sites],
             f"{name}: samples of {view}")
        same(profile["endValue"], total(doc, key), f"{name}: end of {view}")


def check_heap_v2(name, doc):
    text = export(path(name), "heap_v2").decode()
    head, _, maps = text.partition("\nMAPPED_LIBRARIES:\n")
    lines = head.split("\n")
    same(lines[0], "heap_v2/1", f"{name}: first line")
    counts = [[int(n) for n in l.replace("[", "").replace("]", "").split()[1:] for n in [n.rstrip(":")]]
              for l in lines[1:] if l.startswith("  t*:")]
    same(counts[0], [total(doc, k) for k in ("live_objs", "live_bytes", "alloc_objs", "alloc_bytes")], f"{name}: heap_v2 total")
    same(len(counts) - 1, len(doc["sites"]), f"{name}: heap_v2 sites")
    same(maps.count("\n"), sum(m["path"] is not None and m["base"] is not None for m in doc["modules"]),
         f"{name}: heap_v2 libraries")


def check_chrome(name, doc):
    file = json.loads(export(path(name), "chrome"))
    events = file["traceEvents"]
    for e in events:
        expect(e["ph"] in "MCi" and isinstance(e["name"], str) and isinstance(e["pid"], int), f"{name}: event {e}")
        if e["ph"] == "C":
            expect(e["args"] and all(isinstance(v, (int, float)) for v in e["args"].values()), f"{name}: counter {e}")
        if e["ph"] != "M":
            expect(e["ts"] >= 0, f"{name}: time of {e}")
    series = doc["timeline"]["series"]
    plain = [n for n in series if not n.startswith("tier.")]
    for n in plain:
        got = [e["args"]["bytes"] for e in events if e["ph"] == "C" and e["name"] == n]
        same(got, [v for v in series[n] if v is not None], f"{name}: counter {n}")
    for n in set(series) - set(plain):
        got = [e["args"][n.split(".")[1]] for e in events if e["name"] == "live bytes by tier"]
        same(got, series[n], f"{name}: counter {n}")


for each in NAMES:
    for check in (check_folded, check_speedscope, check_heap_v2, check_chrome):
        check(each, report(each))
finish()
