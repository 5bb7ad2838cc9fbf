#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# run: none
"""Makes up a report of an inference server that leaks a little: make_report.py [--sites N] [--diff].

The figures add up as those of a real one do, and come out the same on every run. tests/data/reports
holds its small forms; the large one is made when a test wants it.
"""
import argparse
import json
import math
import random

MIB = 1 << 20
NS = 10**9
T1 = 1_790_000_000
UP_S = 6 * 3600 + 12 * 60
TIERS = ["persistent", "session", "temporary"]
MODULES = [("/opt/llm/bin/llama-server", "8f1c2ab0", 0x400000, 0x9f0000),
           ("/opt/llm/lib/libllama.so.0", "41d09e77", 0x7f31a0000000, 0x7f31a0400000),
           ("/opt/llm/lib/libggml-base.so.0", "9c1f00e2", 0x7f31a1000000, 0x7f31a10c0000),
           ("/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30", "b1c7d0aa", 0x7f31a2000000, 0x7f31a2230000),
           ("/usr/lib/x86_64-linux-gnu/libc.so.6", "7a6d1f3c", 0x7f31a3000000, 0x7f31a31d0000),
           ("/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0", "55e8b0c1", 0x7f31a4000000, 0x7f31a4600000)]
# function, source, module, language; a path from the leaf up is "leaf < caller < ..."
LIBRARY = {
    "main": ("main", "server/main.cpp:88", 0, "cpp"),
    "loop": ("server_context::run_slots", "server/server.cpp:1840", 0, "cpp"),
    "release": ("server_slot::release", "server/server.cpp:1904", 0, "cpp"),
    "insert": ("PrefixCache::insert", "server/prefix.cpp:212", 0, "cpp"),
    "node": ("std::make_unique<PrefixNode>", "include/c++/12/bits/unique_ptr.h:1065", 0, "cpp"),
    "meta": ("make_request_meta", "api/meta.cpp:20", 0, "cpp"),
    "parse": ("api::parse_request", "api/parse.cpp:77", 0, "cpp"),
    "http": ("httplib::Server::process_request", "third_party/httplib.h:7115", 0, "cpp"),
    "load": ("llama_model_load_from_file", "src/llama.cpp:201", 1, "cpp"),
    "tensors": ("llama_model::load_tensors", "src/llama-model.cpp:1472", 1, "cpp"),
    "kv": ("llama_kv_cache::llama_kv_cache", "src/llama-kv-cache.cpp:61", 1, "cpp"),
    "vocab": ("llama_vocab::impl::load", "src/llama-vocab.cpp:1440", 1, "cpp"),
    "decode": ("llama_context::decode", "src/llama-context.cpp:990", 1, "cpp"),
    "logits": ("llama_context::output_reserve", "src/llama-context.cpp:1244", 1, "cpp"),
    "sched": (None, None, 2, "c"),
    "graph": ("ggml_graph_compute", "ggml-cpu.c:2810", 2, "c"),
    "string": ("std::__cxx11::basic_string<char>::_M_create", None, 3, "cpp"),
    "pyeval": ("_PyEval_EvalFrameDefault", None, 5, "c"),
    "py": ("Scheduler.finish_request", "scheduler.py:388", 5, "py"),
}
PATHS = [  # path, tier, share of live, mean size, kind
    ("tensors < load < main", "persistent", .46, 4 * MIB, "steady"),
    ("vocab < load < main", "persistent", .045, 96, "steady"),
    ("kv < load < main", "session", .21, 12 * MIB, "steady"),
    ("node < insert < release < py < pyeval < loop < main", "session", .073, 512, "leak"),
    ("sched < decode < loop < main", "temporary", .039, 4096, "leak"),
    ("logits < decode < loop < main", "session", .052, 600 << 10, "steady"),
    ("graph < decode < loop < main", "temporary", .026, 64 << 10, "temporary"),
    ("string < parse < http < main", "temporary", .004, 180, "temporary"),
    ("meta < parse < http < main", "session", .0007, 500, "lost"),
    ("string < insert < release < loop < main", "session", .018, 72, "cache"),
]


def frames_of(paths):
    """Frames, and each path's numbers in them, innermost first."""
    frames, known, stacks = [], {}, []
    for path in paths:
        names, numbers = path.split(" < "), []
        for i, name in enumerate(names):
            fn, source, module, lang = LIBRARY.get(name, (name, None, 0, "cpp"))
            above = " < ".join(names[i:]) if name == "node" else name
            if above not in known:
                file, _, line = (source or "").partition(":")
                base = MODULES[module][2]
                addr = base + (sum(map(ord, name)) * 2654435761 % 0xb0000)
                known[above] = len(frames)
                frames.append({"id": len(frames), "module": module, "addr": f"0x{addr:x}", "fn": fn,
                               "symbol": fn and "_Z" + str(len(fn)) + "".join(c for c in fn if c.isalnum()),
                               "file": file or None, "line": int(line or 0), "inline_of": None, "lang": lang,
                               "sym": "none" if fn is None else "debug" if file else "symtab"})
            numbers.append(known[above])
        if names[0] == "node":
            frames[numbers[0]]["inline_of"] = numbers[1]
            frames[numbers[0]]["addr"] = frames[numbers[1]]["addr"]
        stacks.append(numbers)
    return frames, stacks


def histogram(rng, total, peak, spread, buckets):
    """A total spread over buckets around one of them."""
    weights = [math.exp(-((i - peak) / spread) ** 2) * (.7 + .6 * rng.random()) for i in range(buckets)]
    counts = [int(total * w / sum(weights)) for w in weights]
    counts[peak] += total - sum(counts)
    return counts


def make_site(rng, number, stack, tier, live, size, kind):
    live_objs = max(1, live // size)
    live_bytes = live_objs * size
    churn = {"steady": 1.02, "cache": 3, "leak": 1.45, "lost": 1.01, "temporary": 9000}[kind]
    allocs = int(live_objs * churn) + (2 if kind == "steady" else 0)
    age_peak = {"steady": 14, "cache": 12, "leak": 11, "lost": 12, "temporary": 1}[kind]
    ages = histogram(rng, live_objs, age_peak, 2.2, 16)
    per_hour = live_bytes / (UP_S / 3600) if kind in ("leak", "lost") else 0
    cohorts = {"steady": lambda i: live_objs if i == 0 else 0,
               "cache": lambda i: int(live_objs / 8) if i >= 24 else 0,
               "leak": lambda i: int(live_objs / 32 * (.8 + .4 * rng.random())),
               "lost": lambda i: int(live_objs / 32 * (.8 + .4 * rng.random())),
               "temporary": lambda i: live_objs if i == 31 else 0}[kind]
    return {"id": f"s:{number * 2654435761 % 0xffff:04x}", "stack": stack, "tier": tier,
            "authority": "learned" if kind != "temporary" else "size", "height": 480 + 16 * (number % 40),
            "alloc_objs": allocs, "alloc_bytes": allocs * size, "free_objs": allocs - live_objs,
            "free_bytes": (allocs - live_objs) * size, "live_objs": live_objs, "live_bytes": live_bytes,
            "slot_bytes": live_objs * ((size + 15) // 16 * 16 + (size // 12 // 16 * 16 if size < 4096 else 0)),
            "size_min": max(1, size - size // 8), "size_max": size + size // 8,
            "life_hist_log2s": histogram(rng, allocs - live_objs, 0 if kind == "temporary" else 6, 1.8, 16),
            "age_hist_log2s": ages, "age_bytes_hist_log2s": [a * size for a in ages],
            "cohorts": [cohorts(i) for i in range(32)],
            "temporary_objs": int((allocs - live_objs) * .97) if kind == "temporary" else 0,
            "per_session": round(live_objs / 1218, 4) if kind in ("leak", "lost") else None, "per_request": None,
            "frag_pinned_bytes": live_bytes * 9 if kind == "cache" else live_bytes * 2 if kind == "leak" else 0,
            "growth_bytes": live_bytes if kind == "leak" else 0, "growth_bytes_per_h": round(per_hour, 1),
            "unreachable_objs": live_objs if kind == "lost" else 0,
            "unreachable_bytes": live_bytes if kind == "lost" else 0, "est_rel_err": 0,
            "base_alloc_objs": None, "base_alloc_bytes": None, "base_live_objs": None, "base_live_bytes": None,
            "tag": None}


def make_sites(rng, count):
    paths = list(PATHS)
    names = ["http", "loop", "decode", "parse", "release", "graph", "load"]
    # A call tree as deep and as repetitive as a real one: most sites share most of their stacks.
    tree = [" < ".join(["loop", "main"]), "http < main", "load < main"]
    while len(paths) < count:
        parent = tree[int(rng.random() ** 2 * len(tree))]
        n = len(paths)
        name = f"ns{n % 23}::component_{n % 311}::method_{n}"
        path = f"{name} < {parent}"
        if parent.count("<") < 24:
            tree.append(path)
        kind = rng.choice(["steady", "steady", "temporary", "cache"])
        paths.append((path, rng.choice(TIERS) if kind != "temporary" else "temporary",
                      .072 / count * -math.log(rng.random() + 1e-9), int(2 ** (4 + rng.random() * 10)), kind))
    frames, stacks = frames_of([p[0] for p in paths])
    live = 1108 * MIB
    sites = [make_site(rng, i + 1, i, p[1], int(p[2] * live), p[3], p[4]) for i, p in enumerate(paths)]
    for i, s in enumerate(sites):
        s["id"] = f"s:{i * 40503 % 65536:04x}" if count < 60000 else f"s:{i:06x}"
    order = sorted(sites, key=lambda s: (-s["live_bytes"], s["id"]))
    return frames, [{"id": i, "frames": f, "truncated": False} for i, f in enumerate(stacks)], order


def make_tiers(sites):
    tiers = []
    for name, blowup, huge, sparse in (("persistent", 1.0, .99, 1), ("session", 1.34, .71, 31),
                                       ("temporary", 2.6, .44, 12)):
        own = [s for s in sites if s["tier"] == name]
        live, slot = sum(s["live_bytes"] for s in own), sum(s["slot_bytes"] for s in own)
        span = int(slot * (1 + (blowup - 1) * .6))
        cached = int(live * (blowup - 1) * .4)
        tiers.append({"tier": name, "live_req": live, "live_objs": sum(s["live_objs"] for s in own), "slot": slot,
                      "span": span, "cached": cached, "peak_live": int(live * 1.12), "peak_rss": int(live * blowup * 1.05),
                      "blowup_now": round((span + cached) / live, 3), "blowup_peak": round(blowup * .94, 3),
                      "huge_cov": huge, "purity": round(.9 + huge / 11, 3), "max_bytes": None, "refused": 0,
                      "sparse_pages": sparse, "saved_bytes": int(span * .06),
                      "life_hist_log2s": [sum(c) for c in zip(*(s["life_hist_log2s"] for s in own))],
                      "verdict": {"persistent": "ok", "session": "pinned by s:ecc5",
                                  "temporary": "cache, returns in 10 s"}[name]})
    return tiers


def make_pages(rng, sites, span):
    """One for each 2 MiB: dense weights, then session memory with holes, then temporary."""
    pages, addr = [], 0x5e0000000000
    pinner = next(s["id"] for s in sites if s["frag_pinned_bytes"])
    for i in range(max(1, span // (2 * MIB))):
        at = i / (span // (2 * MIB) + 1)
        tier = TIERS[0] if at < .52 else TIERS[1] if at < .93 else TIERS[2]
        live = {"persistent": 1.0, "session": rng.random() ** .45, "temporary": rng.random() ** 2}[tier]
        live_bytes = int(live * 2 * MIB)
        pinned = live < .5 and tier == "session"
        pages.append({"addr": f"0x{addr + i * 2 * MIB:x}", "tier": tier, "live_bytes": live_bytes,
                      "longest_free": int((2 * MIB - live_bytes) * .6), "huge": live > .5,
                      "pinned_by": pinner if pinned else None, "pinned_bytes": 480 + 16 * (i % 90) if pinned else None,
                      "sites": 1 if tier == "persistent" else 1 + i % 9})
    return pages


def make_classes(rng, sites):
    classes = {}
    for s in sites:
        size = s["slot_bytes"] // s["live_objs"]
        if size > 65536:
            continue
        slot = 1 << max(4, (size - 1).bit_length()) if size > 1024 else (size + 15) // 16 * 16
        c = classes.setdefault((s["tier"], slot), {"live_objs": 0, "req": 0})
        c["live_objs"] += s["live_objs"]
        c["req"] += s["live_bytes"]
    rows = []
    for (tier, slot), c in sorted(classes.items(), key=lambda e: (TIERS.index(e[0][0]), e[0][1])):
        used = c["live_objs"] * slot
        span = int(used / (.98 if tier == "persistent" else .62 + .3 * rng.random())) // 65536 * 65536 + 65536
        rows.append({"tier": tier, "class_bytes": slot, "live_objs": c["live_objs"], "req_bytes": c["req"],
                     "spans": span // 65536, "int": round(max(0, 1 - c["req"] / used), 4),
                     "ext": round(max(0, 1 - used / span), 4), "span_bytes": span,
                     "span_fill_hist": histogram(rng, span // 65536, 9 if tier == "persistent" else 6, 2.5, 10)})
    return rows


def make_timeline(rng, tiers, balance, limit, points):
    t = [T1 - UP_S + (i + 1) * UP_S / points for i in range(points)]
    series = {n: [] for n in ["rss", "live", "tier.persistent.live", "tier.session.live", "tier.temporary.live",
                              "limit", "gpu.used"]}
    final = {x["tier"]: x["live_req"] for x in tiers}
    for i in range(points):
        u = (i + 1) / points
        warm = min(1, u * 14)
        day = .5 + .5 * math.sin(u * 9)
        p = final["persistent"] * warm
        s = final["session"] * ((.52 + .12 * day) * warm + .36 * u) if i + 1 < points else final["session"]
        m = final["temporary"] * (.35 + .5 * day * rng.random() + .15 * u) if i + 1 < points else final["temporary"]
        live = p + s + m
        rest = balance["rss_bytes"] - sum(final.values())
        for name, value in (("rss", live + rest * (.4 + .6 * warm)), ("live", live), ("tier.persistent.live", p),
                            ("tier.session.live", s), ("tier.temporary.live", m), ("limit", limit),
                            ("gpu.used", 5120 * MIB * warm)):
            series[name].append(round(value))
    series["rss"][-1] = balance["rss_bytes"]
    return {"step_s": round(UP_S / points), "t": [round(x) for x in t], "series": series}


def make_leaks(sites):
    leaks = []
    for s in sites:
        if s["growth_bytes"]:
            rate, direct = s["growth_bytes_per_h"], None
            leaks.append({"class": "growing", "slope_bytes_per_h": rate, "ci95": [round(rate * .875), round(rate * 1.15)],
                          "confidence": .999 if not leaks else .996, "p": 1.2e-7, "q": 3.9e-6, "cohort_fill": 1.0,
                          "corr": {"requests": .97 if not leaks else .41, "tokens": .62 if not leaks else .99},
                          "direct": None, "indirect": None, "direct_objs": None, "indirect_objs": None,
                          "scan": {"passes": 2, "threads_stopped": 41, "threads_missed": 0},
                          "evidence": ["60 of 60 cohorts still hold objects",
                                       "survivors older than 8 min rise in every window", "frees per allocation .31"],
                          "holders": ["libserver .bss+0x4e20 g_prefix", "PrefixCache::nodes_"] if not leaks else [],
                          "hint": "entries are added on finish and removed only on explicit reset" if not leaks else None,
                          "site": s["id"], "live_bytes": s["live_bytes"], "live_objs": s["live_objs"],
                          "per_session": s["per_session"], "per_request": .97 if not leaks else None})
    for s in sites:
        if s["unreachable_bytes"]:
            leaks.append({"class": "unreachable", "slope_bytes_per_h": s["growth_bytes_per_h"], "ci95": [],
                          "confidence": .99, "p": None, "q": None, "cohort_fill": None,
                          "corr": {"requests": None, "tokens": None}, "direct": s["unreachable_bytes"],
                          "indirect": s["unreachable_bytes"] // 5, "direct_objs": s["unreachable_objs"],
                          "indirect_objs": s["unreachable_objs"],
                          "scan": {"passes": 2, "threads_stopped": 41, "threads_missed": 0},
                          "evidence": ["two scans 15 s apart agree", "youngest is 22 min old"], "holders": [], "hint": None,
                          "site": s["id"], "live_bytes": s["live_bytes"], "live_objs": s["live_objs"],
                          "per_session": .99, "per_request": None})
    keys = ["rank", "site", "class", "confidence", "slope_bytes_per_h", "ci95", "p", "q", "cohort_fill", "corr", "direct",
            "indirect", "direct_objs", "indirect_objs", "scan", "live_bytes", "live_objs", "per_session", "per_request",
            "evidence", "holders", "hint", "acknowledged", "cap_bytes"]
    for i, x in enumerate(leaks):
        x |= {"rank": i + 1, "acknowledged": False, "cap_bytes": None}
    return [{k: x[k] for k in keys} for x in leaks]


def make_balance(tiers):
    live, slot = sum(t["live_req"] for t in tiers), sum(t["slot"] for t in tiers)
    span, cached = sum(t["span"] for t in tiers), sum(t["cached"] for t in tiers)
    parts = {"live_req": live, "internal": slot - live, "external": span - slot, "cached": cached,
             "metadata": 19 * MIB, "other_anon": 126 * MIB, "file": 538 * MIB, "pinned": 212 * MIB,
             "nonresident": -37 * MIB, "residual": 6 * MIB + 4096}
    return {"rss_bytes": sum(parts.values())} | parts


def make_base(report, rng):
    """The same process three hours earlier, as the A of a diff."""
    for s in report["sites"]:
        leaks = s["growth_bytes"] or s["unreachable_bytes"]
        part = .52 if leaks else 1 if s["tier"] == "persistent" else .8 + .5 * rng.random()
        s["base_live_objs"] = int(s["live_objs"] * part)
        s["base_live_bytes"] = s["live_bytes"] // s["live_objs"] * s["base_live_objs"]
        s["base_alloc_objs"] = s["alloc_objs"] // 2
        s["base_alloc_bytes"] = s["alloc_bytes"] // 2
    base = dict(report["balance"])
    base["live_req"] = sum(s["base_live_bytes"] for s in report["sites"])
    base["cached"] += 11 * MIB
    base["rss_bytes"] = sum(v for k, v in base.items() if k != "rss_bytes")
    report["kind"] = "diff"
    report["diff"] = {"a": "4187-9031.tm at 03:12", "b": "4187-9031.tm at 06:12",
                      "a_unix_ns": str((T1 - 3 * 3600) * NS), "b_unix_ns": str(T1 * NS), "base": base}


def make_gpu(sites):
    def site(n, memory, live, blocks, ever, by=None):
        return {"site": sites[n]["id"], "kind": memory, "live_bytes": live, "live_objs": blocks, "peak": live, "alloc_objs": ever,
                "alloc_bytes": live // blocks * ever, "context": "0x7f0c04001000", "stack": sites[n]["stack"], "tier": sites[n]["tier"],
                "reserved_by": by, "base_live_objs": None, "base_live_bytes": None, "growing": False,
                "growth_bytes_per_h": None, "confidence": None}

    def row(api, memory, peak, parts):
        return {"dev": 0, "api": api, "memory": memory, "live_bytes": sum(p["live_bytes"] for p in parts), "peak": peak,
                **{k: sum(p[k] for p in parts) for k in ("live_objs", "alloc_objs", "alloc_bytes")}, "sites": parts}

    return [row("cuMemAlloc", "device", 5400 * MIB, [site(0, "cuMemAlloc", 3 << 30, 290, 290),
                                                     site(2, "cuMemAlloc, reserved by a framework's cache", 2 << 30, 21, 58,
                                                          "libc10_cuda.so")]),
            row("cuMemHostAlloc", "pinned host", 212 * MIB, [site(3, "cuMemHostAlloc", 212 * MIB, 3, 3)])]


def make(count, seed=1, points=120):
    rng = random.Random(seed)
    frames, stacks, sites = make_sites(rng, count)
    tiers = make_tiers(sites)
    balance = make_balance(tiers)
    limit = 4096 * MIB
    leaks = make_leaks(sites)
    pages = make_pages(rng, sites, sum(t["span"] for t in tiers) // (1 if count > 1000 else 4))
    rate = sum(x["slope_bytes_per_h"] for x in leaks if x["class"] == "growing")
    hours = (limit - balance["rss_bytes"]) / rate
    nothing = {k: None for k in balance}
    return {
        "schema": "tiermalloc.report/1", "kind": "full",
        "tool": {"version": "0.1.0", "features": ["exact", "stacks", "epochs", "scan"]},
        "process": {"pid": 4187, "start_unix_ns": str((T1 - UP_S) * NS),
                    "cmdline": ["llama-server", "-m", "/models/yi-coder-1.5b.gguf", "--api-key", "s3cret-t0ken"],
                    "program": "llama-server", "host": "gpu-07", "exe_build_id": "8f1c2ab0",
                    "boot_id": "0f0c3c1e-6f4e-4f50-9d0a-6f6f7c1f3a11", "container": None, "ended": "running",
                    "heartbeat_age_ms": 420, "threads": 41, "limit_bytes": limit,
                    "ledger": "/dev/shm/tiermalloc-1000/4187-9031.tm"},
        "capture": {"t0_unix_ns": str((T1 - UP_S) * NS), "t1_unix_ns": str(T1 * NS), "counts": "exact",
                    "stack_interval_bytes": 524288, "seqlock_torn": 0, "sites_dropped": 0, "pre_attach": False,
                    "window_ms": 60000, "windows": 372},
        "scan": {"state": "found", "passes": 2, "at_unix_ns": str((T1 - 12) * NS), "read_bytes": 3168 * MIB,
                 "unread_bytes": 212 * MIB, "threads_stopped": 41, "threads_missed": 0, "stopped_us": 2130,
                 "found_objs": sum(x["direct_objs"] + x["indirect_objs"] for x in leaks if x["direct_objs"]),
                 "found_bytes": sum(x["direct"] + x["indirect"] for x in leaks if x["direct"]), "young_objs": 120,
                 "young_bytes": 36000, "why": None},
        "verdict": {"text": "2 growing leaks, 1 unreachable block group, 1 watch", "outcome": "found", "growing": 2,
                    "unreachable": 1, "at_exit": 0, "watch": 1, "growth_bytes_per_h": round(rate, 1),
                    "growth_ci95": [round(rate * .88), round(rate * 1.14)], "limit_reached_h": round(hours, 1),
                    "limit_reached_ci95": [round(hours / 1.14, 1), round(hours / .88, 1)]},
        "balance": balance,
        "mappings": [{"name": "yi-coder-1.5b.gguf", "part": "file", "bytes": 511 * MIB, "mapped_bytes": 1520 * MIB, "count": 1},
                     {"name": "shared libraries", "part": "file", "bytes": 27 * MIB, "mapped_bytes": 88 * MIB, "count": 61},
                     {"name": "pymalloc arenas", "part": "other_anon", "bytes": 84 * MIB, "mapped_bytes": 84 * MIB, "count": 84},
                     {"name": "thread stacks", "part": "other_anon", "bytes": 42 * MIB, "mapped_bytes": 328 * MIB, "count": 41},
                     {"name": "pinned by CUDA", "part": "pinned", "bytes": 212 * MIB, "mapped_bytes": 212 * MIB, "count": 3}],
        "tiers": tiers, "classes": make_classes(rng, sites),
        "sizes": [{"size": 128256 * 4, "count": 91204, "peak_concurrent": 8, "tier": "session"},
                  {"size": 512, "count": 260117, "peak_concurrent": 165020, "tier": "session"},
                  {"size": 12 * MIB, "count": 1218, "peak_concurrent": 19, "tier": "session"}],
        "pools": [{"tier": "session", "slot_bytes": 12 * MIB, "hits": 1203, "misses": 15, "exhausted": 4, "high_water": 16,
                   "slots": 16}],
        "hugepages": {"density_hist": [sum(min(9, p["live_bytes"] * 10 // (2 * MIB)) == i for p in pages) for i in range(10)],
                      "longest_free_hist": [sum(p["longest_free"].bit_length() == i for p in pages) for i in range(22)],
                      "huge_bytes": sum(p["huge"] for p in pages) * 2 * MIB, "resident_bytes": len(pages) * 2 * MIB,
                      "pages": pages},
        "modules": [{"id": i, "path": m[0], "build_id": m[1] * 5, "base": f"0x{m[2]:x}", "end": f"0x{m[3]:x}", "offset": 0,
                     "loaded_ns": str((T1 - UP_S) * NS), "unloaded_ns": None} for i, m in enumerate(MODULES)],
        "frames": frames, "stacks": stacks, "sites": sites, "leaks": leaks,
        "watch": [{"site": sites[1]["id"], "class": "growing", "note": "second half grew by 12 % of the first: warm-up"}],
        "timeline": make_timeline(rng, tiers, balance, limit, points),
        "gpu": make_gpu(sites),
        "gpu_pools": [{"dev": 0, "context": "0x7f0c04001000", "pool": "slabs", "reserved_bytes": 512 * MIB, "used_bytes": 437 * MIB,
                       "idle_bytes": 75 * MIB, "hits": 48211, "misses": 19},
                      {"dev": 0, "context": "0x7f0c04001000", "pool": "pinned host", "reserved_bytes": None, "used_bytes": None,
                       "idle_bytes": 12 * MIB, "hits": None, "misses": None}],
        "events": [{"at_unix_ns": str((T1 - 9000) * NS), "kind": "tier", "text": "s:d5ba moved from temporary to session"},
                   {"at_unix_ns": str((T1 - 4020) * NS), "kind": "pool", "text": "12 MiB pool exhausted (16 in use)"}],
        "suggestions": [{"rule": "symbol=PrefixCache::insert* -> tier=persistent", "saves_bytes": 62 * MIB,
                         "why": "31 huge pages are held by 211 KiB of objects older than 1 h"}],
        "diff": {"a": None, "b": None, "a_unix_ns": None, "b_unix_ns": None, "base": nothing},
        "blind_spots": ["pymalloc arenas (84 MiB) are one opaque row: run with --python to see inside",
                        "libggml-base.so.0 has no symbols: functions are module+offset"],
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sites", type=int, default=48)
    parser.add_argument("--points", type=int, default=120)
    parser.add_argument("--diff", action="store_true")
    args = parser.parse_args()
    report = make(args.sites, points=args.points)
    if args.diff:
        make_base(report, random.Random(2))
    print(json.dumps(report, separators=(",", ":")))


if __name__ == "__main__":
    main()
