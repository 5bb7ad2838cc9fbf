#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# The ledger tells how many objects of a site are how old, after a kill too: a leak's are spread over
# all windows, a queue's are young, and what is freed at once has no record.
import os, struct, subprocess, sys

sys.path.insert(0, os.path.join(os.environ["TM_SRC"], "tests/tools"))
from ledger_file import Ledger, area

WINDOW = 100


def run(seconds, how):
    env = dict(os.environ, LD_PRELOAD=os.environ["TM_LIB"], TIERMALLOC_DIR=os.getcwd() + "/" + how,
               TIERMALLOC_LEAK_WINDOW_MS=str(WINDOW))
    p = subprocess.Popen([os.environ["TM_TESTS"] + "/ages_subject", str(seconds), how], env=env,
                         stdout=subprocess.PIPE, text=True)
    out = p.communicate()[0]
    name, = [f for f in os.listdir(how) if f.startswith("%d-" % p.pid)]
    sites = {}
    for line in out.splitlines():
        name_of, code, n = line.split()
        sites[name_of] = (int(code, 16), int(n))
    return sites, Ledger(how + "/" + name)


def records(ledger):
    size = ledger.record("cohorts", area("COHORTS_AT")) and ledger.layout["cohorts"]["="][0]
    got = {}
    for i in range(ledger.header["cohort_sites"]):
        at = area("COHORTS_AT") + i * size
        r = ledger.record("cohorts", at)
        word, = struct.unpack_from("<Q", ledger.m, at)
        r["cohort"] = struct.unpack("<32I", r["cohort"])
        r["died"] = struct.unpack("<32I", r["died"])
        ring = at + size - 128 * 12
        r["ring"] = [struct.unpack_from("<III", ledger.m, ring + 12 * k) for k in range(128)]
        got[word & (1 << 48) - 1] = r
    return got


def look(how):
    sites, ledger = run(4, how)
    h = ledger.header
    assert h["window_ms"] == WINDOW and 20 <= h["windows"] <= 41, h["windows"]
    assert h["epoch"] == h["windows"] + 1
    by_site = records(ledger)

    def of(name):
        hit = [r for s, r in by_site.items() if sites[name][0] <= s < sites[name][0] + 24]
        return hit[0] if hit else None

    def series(r, what):
        epochs = range(r["first_epoch"], r["last_epoch"] + 1)
        return [r["ring"][e % 128][what] for e in epochs]

    leak, queue, churn, steady, block = (of(n) for n in ("leak", "queue", "churn", "steady", "block"))
    live = leak["live_objects"]
    assert sites["leak"][1] * .85 <= live <= sites["leak"][1], (live, sites["leak"])
    assert sum(leak["cohort"]) == live, "cohorts are all that live"
    assert leak["live_bytes"] == live * 100
    held = [c for c in leak["cohort"][:15] if c]
    assert len(held) == 15, "a leak leaves something in every window: %s" % (leak["cohort"],)
    old = series(leak, 1)
    assert old == sorted(old) and old[-1] > old[10] > 0, old
    assert abs(old[-1] - sum(leak["cohort"][8:])) <= 0
    births = series(leak, 0)
    assert sum(births) >= live * .8 and sum(leak["died"]) <= 2, (births, leak["died"])
    assert queue["live_objects"] <= 500 and sum(queue["cohort"]) == queue["live_objects"]
    assert sum(queue["cohort"][6:]) == 0, queue["cohort"]
    assert sum(queue["died"]) > 1000, "deaths by age: %s" % (queue["died"],)
    assert churn is None or churn["live_objects"] < 8
    assert steady is None or steady["cohort"][0] == 0
    assert block["live_objects"] >= sites["block"][1] * .8 and block["live_bytes"] == block["live_objects"] * 100000
    windows = ledger.table("window", "WINDOWS_AT", h["windows"])
    for a, b in zip(windows, windows[1:]):
        assert b["seq"] == a["seq"] + 1 and b["begun_ms"] == a["ended_ms"] and b["ended_ms"] >= b["begun_ms"] + WINDOW
    assert windows[-1]["live_bytes"] > windows[5]["live_bytes"] and windows[-1]["births"] > 100
    # time
    assert h["clean_exit"] == (how == "exit")
    ledger.record("sample", area("SAMPLES_AT"))
    size = ledger.layout["sample"]["="][0]
    n = min(struct.unpack("<3Q", h["samples"])[0], 600)
    assert n >= 20, n
    times = []
    for i in range(n):
        words = struct.unpack_from("<16Q", ledger.m, area("SAMPLES_AT") + i * size)
        times.append(words[0])
        assert words[1] > 1 << 20, "RSS"
    assert times == sorted(times)
    assert h["begun_ms"] <= times[0] and times[-1] <= h["heartbeat_ms"] + 1000
    c = ledger.record("counters", area("COUNTERS_AT"))
    assert c["seq"] % 2 == 0 and c["rss_bytes"] > 1 << 20 and c["peak_rss_bytes"] >= c["rss_bytes"] * .9
    tiers = [struct.unpack_from("<32Q", c["tier"], 256 * t) for t in range(4)]
    live_all = tiers[0][0]
    assert live_all == sum(t[0] for t in tiers[1:]), "tiers sum to all: %s" % ([t[0] for t in tiers],)
    # exact sizes of blocks
    sizes = {s["size"]: s for s in ledger.table("size", "SIZES_AT", 64)}
    s, n = sizes[100000], sites["block"][1]
    assert (s["count"], s["live"], s["peak"]) == (n, n, n), (s, n)
    s = sizes[80016]
    assert (s["count"], s["live"], s["peak"]) == (n, 0, 1), (s, n)
    assert live_all > sites["leak"][1] * 90 + sites["block"][1] * 80000


look("kill")
look("exit")
