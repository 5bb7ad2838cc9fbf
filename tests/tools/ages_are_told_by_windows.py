#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# The ledger tells how many objects of a site are how old, after a kill too: a leak's are spread over
# all windows, a queue's are young, and what is freed at once has no record.
import os, struct, subprocess, sys, time

sys.path.insert(0, os.path.join(os.environ["TM_SRC"], "tests/tools"))
from ledger_file import Ledger, area, fields

WINDOW = 100
HEADER = fields("tm_ledger_header")


STEPS = 100  # of a batch: as many as replace the whole queue


def read_header(path):
    with open(path, "rb") as f:
        size = max(o + n for o, n in HEADER.values())
        raw = f.read(size)
    return {k: int.from_bytes(raw[o:o + n], "little") for k, (o, n) in HEADER.items()}


class Subject:
    """Does its steps in batches; how many windows have gone by is read from its ledger."""

    def __init__(self, how):
        env = dict(os.environ, LD_PRELOAD=os.environ["TM_LIB"], TIERMALLOC_DIR=os.getcwd() + "/" + how,
                   TIERMALLOC_LEAK_WINDOW_MS=str(WINDOW))
        self.begun = time.monotonic()
        self.p = subprocess.Popen([os.environ["TM_TESTS"] + "/ages_subject", how], env=env, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        self.steps = 0
        self.certain = {}  # epoch: objects that `leak` made in it, at least
        self.ask(0)
        name, = [f for f in os.listdir(how) if f.startswith("%d-" % self.p.pid)]
        self.path = how + "/" + name

    def ask(self, steps):
        self.p.stdin.write("%d\n" % steps)
        self.p.stdin.flush()
        assert self.p.stdout.readline() == "done\n"

    def epoch(self):
        return read_header(self.path)["epoch"]

    def batch(self):
        before = self.epoch()
        self.ask(STEPS)
        self.steps += STEPS
        if self.epoch() == before:
            self.certain[before] = self.certain.get(before, 0) + 2 * STEPS
        return before

    def until(self, epoch):
        while self.epoch() < epoch:
            self.ask(0)
            time.sleep(.005)

    def end(self):
        sites = {}
        for line in self.p.communicate()[0].splitlines():
            name, code, n = line.split()
            sites[name] = (int(code, 16), int(n))
        self.took_ms = (time.monotonic() - self.begun) * 1000
        return sites, Ledger(self.path)


def run(how):
    """A batch in each window that it fits into, 26 windows; then nothing but churn for three more."""
    s = Subject(how)
    first = s.epoch()
    while s.epoch() < first + 26 or len(s.certain) < 16:
        last = s.batch()
        s.until(last + 1)
    s.until(s.epoch() + 3)
    return (s, last, *s.end())


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
    subject, last, sites, ledger = run(how)
    h = ledger.header
    assert h["window_ms"] == WINDOW and 29 <= h["windows"] <= subject.took_ms / WINDOW + 1, h["windows"]
    assert h["epoch"] == h["windows"] + 1
    by_site = records(ledger)

    def of(name):
        hit = [r for s, r in by_site.items() if sites[name][0] <= s < sites[name][0] + 24]
        return hit[0] if hit else None

    def series(r, what):
        epochs = range(max(r["first_epoch"], r["last_epoch"] - 127), r["last_epoch"] + 1)
        return [r["ring"][e % 128][what] for e in epochs]

    leak, queue, churn, steady, block = (of(n) for n in ("leak", "queue", "churn", "steady", "block"))
    # Nothing was born in the last windows: the records are of all.
    live = leak["live_objects"]
    assert live == sites["leak"][1] == 2 * subject.steps, (live, sites["leak"])
    assert sum(leak["cohort"]) == live, "cohorts are all that live"
    assert leak["live_bytes"] == live * 100
    newest = leak["last_epoch"]
    for epoch, least in subject.certain.items():
        if newest - epoch < 31:
            assert leak["cohort"][newest - epoch] >= least, (epoch, least, leak["cohort"])
    old = series(leak, 1)
    assert old == sorted(old) and old[-1] == sum(leak["cohort"][8:]) > 0, old
    births = series(leak, 0)
    least = sum(n for e, n in subject.certain.items() if max(leak["first_epoch"], newest - 127) <= e <= newest)
    assert least <= sum(births) <= live and sum(leak["died"]) == 0, (births, least, leak["died"])
    # The last batch made all of the queue anew.
    assert queue["live_objects"] == 500 and sum(queue["cohort"]) == 500, queue["cohort"]
    assert sum(queue["cohort"][newest - last + 1:]) == 0, (newest, last, queue["cohort"])
    assert sum(queue["died"]) > 1000, "deaths by age: %s" % (queue["died"],)
    assert churn is None or churn["live_objects"] < 8
    assert steady is None or steady["cohort"][0] == 0
    assert block["live_objects"] == sites["block"][1] and block["live_bytes"] == block["live_objects"] * 100000
    windows = ledger.table("window", "WINDOWS_AT", min(h["windows"], 128))
    windows.sort(key=lambda w: w["seq"])
    for a, b in zip(windows, windows[1:]):
        assert b["seq"] == a["seq"] + 1 and b["begun_ms"] == a["ended_ms"] and b["ended_ms"] >= b["begun_ms"] + WINDOW
    assert windows[-1]["live_bytes"] > windows[0]["live_bytes"] and max(w["births"] for w in windows) > 100
    # time
    assert h["clean_exit"] == (how == "exit")
    ledger.record("sample", area("SAMPLES_AT"))
    size = ledger.layout["sample"]["="][0]
    n = struct.unpack("<3Q", h["samples"])[0]
    assert n >= 20, n
    times = []
    for i in (k % 600 for k in range(max(0, n - 600), n)):
        words = struct.unpack_from("<16Q", ledger.m, area("SAMPLES_AT") + i * size)
        times.append(words[0])
        assert words[1] > 1 << 20, "RSS"
    assert times == sorted(times)
    assert h["begun_ms"] <= times[0] and times[-1] <= h["heartbeat_ms"] + 1000
    c = ledger.record("counters", area("COUNTERS_AT"))
    # The helper may have been writing when the kill came.
    assert c["seq"] % 2 == 0 or how == "kill"
    assert c["rss_bytes"] > 1 << 20 and c["peak_rss_bytes"] >= c["rss_bytes"] * .9
    tiers = [struct.unpack_from("<32Q", c["tier"], 256 * t) for t in range(4)]
    live_all = tiers[0][0]
    assert c["seq"] % 2 or live_all == sum(t[0] for t in tiers[1:]), "tiers sum to all: %s" % ([t[0] for t in tiers],)
    # exact sizes of blocks
    sizes = {s["size"]: s for s in ledger.table("size", "SIZES_AT", 64)}
    s, n = sizes[100000], sites["block"][1]
    assert (s["count"], s["live"], s["peak"]) == (n, n, n), (s, n)
    s = sizes[80016]
    assert (s["count"], s["live"], s["peak"]) == (n, 0, 1), (s, n)
    assert live_all > sites["leak"][1] * 90 + sites["block"][1] * 80000


look("kill")
look("exit")
