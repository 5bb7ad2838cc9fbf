#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Decoding on one thread: how does the runner compare with llama.cpp, and what do allocators change?

usage: runner.py [-n REPEATS] [-k TOKENS] [-s SHAPE] [-t TYPE,..] [-a grow|full] [--llama] NAME=PATH[,ENV=VALUE..] ...
  NAME=        glibc (empty path: no preload)
  NAME=/lib.so a preload; further ENV=VALUE pairs are set for it
  --llama      beside it llama.cpp with the kernels that it chooses for this processor itself
  -a full      keys and values are reserved and cleared as llama.cpp's are, the default; grow: by realloc
TM_BUILD names the build tree (default: ../../build); models are made in its cache. Prints, of
interleaved runs with parameters in malloc memory: processor time per token (least of all, median of
the runs' medians) with its ratio to the first line, the first token's latency, resident memory, page
faults per token in the second half of the answer. The claims "at least .8 of llama.cpp's speed" and
"at most .92 of glibc's time with huge pages" are refuted by the ratio of the least or the medians.
"""
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SRC = os.environ.get("TM_SRC", os.path.dirname(os.path.dirname(HERE)))
BUILD = os.path.abspath(os.environ.get("TM_BUILD", os.path.join(SRC, "build")))
RUN = os.path.join(BUILD, "yi-coder-run")
TOKENS = "5,600,7000,8"


def model(shape, kind):
    path = os.path.join(BUILD, "cache", f"{shape}-{kind}.gguf")
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        subprocess.run([RUN, "make-model", "--shape", shape, "--type", kind, "-o", path + ".new"], check=True)
        os.rename(path + ".new", path)
    return path


def ours(path, count, lib, extra, way):
    env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    env.update(extra)
    if lib:
        env["LD_PRELOAD"] = lib
    stats = json.loads(subprocess.run([RUN, "-m", path, "--tokens", TOKENS, "-n", str(count), "--greedy", "--quiet",
                                       "--load", "read", "--kv-alloc", way, "--stats", "/dev/stderr"], env=env, check=True,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE).stderr)
    return {"least": stats["token_cpu_ms"]["min"], "median": stats["token_cpu_ms"]["p50"],
            "first": stats["first_token_ms"]["p50"], "rss": stats["peak_rss_bytes"] / 2**20,
            "faults": stats["warm_minor_faults"] / max(1, stats["warm_tokens"])}


def llama_program():
    """A program that asks llama.cpp, and the folder of its back ends."""
    script = f""". "{SRC}/tests/runner/oracle/fetch.sh"; oracle_fetch >&2
        $ORACLE_CC "{SRC}/tests/runner/oracle/logits.c" -o "$ORACLE/logits" $ORACLE_LINK >&2 || exit 1
        echo "$ORACLE/logits"; echo "$ORACLE_LIBS\""""
    done = subprocess.run(["sh", "-c", script], env=dict(os.environ, TM_BUILD=BUILD, TM_SRC=SRC),
                          stdout=subprocess.PIPE, text=True)
    if done.returncode:
        print("llama.cpp can't be had here: left out.\n")
        return None
    return done.stdout.split()


def llama(program, libs, path, count):
    # With a folder instead of a file the program loads the back end that fits the processor best.
    out = subprocess.run([program, libs, path, "", TOKENS, str(count), "64", "1", "bench"], check=True,
                         capture_output=True, text=True).stdout.split()
    return {"least": float(out[0]), "median": float(out[1])}


def main(args):
    repeats, count, shape, kinds, beside, allocs, way = 5, 16, "yi-coder-1.5b", ["Q8_0", "Q4_0"], None, [], "full"
    while args:
        word = args.pop(0)
        if word == "-n":
            repeats = int(args.pop(0))
        elif word == "-k":
            count = int(args.pop(0))
        elif word == "-s":
            shape = args.pop(0)
        elif word == "-t":
            kinds = args.pop(0).split(",")
        elif word == "-a":
            way = args.pop(0)
        elif word == "--llama":
            beside = llama_program()
        elif "=" in word:
            name, rest = word.split("=", 1)
            parts = rest.split(",")
            allocs.append((name, parts[0], dict(p.split("=", 1) for p in parts[1:])))
        else:
            sys.exit(__doc__)
    if not allocs:
        sys.exit(__doc__)
    print("One thread, %d tokens, weights in malloc memory, keys and values %s; processor time per token.\n" %
          (count, {"full": "reserved and cleared", "grow": "grown by realloc"}[way]))
    print("| model | run | least ms | of first | median ms | of first | first token ms | RSS MiB | faults/token |")
    print("|---|---|---|---|---|---|---|---|---|")
    for kind in kinds:
        path = model(shape, kind)
        runs = {name: [] for name, *_ in allocs}
        if beside:
            runs["llama.cpp"] = []
        for repeat in range(repeats):
            turn = repeat % len(allocs)
            for name, lib, extra in allocs[turn:] + allocs[:turn]:
                runs[name].append(ours(path, count, lib, extra, way))
            if beside:
                runs["llama.cpp"].append(llama(*beside, path, count))
        first = runs[allocs[0][0]]
        for name, got in runs.items():
            def mid(key):
                return statistics.median(r[key] for r in got) if key in got[0] else float("nan")
            least, base = min(r["least"] for r in got), min(r["least"] for r in first)
            row = (f"| {shape} {kind} | {name} | {least:.1f} | {least / base:.2f} | {mid('median'):.1f} | "
                   f"{mid('median') / statistics.median(r['median'] for r in first):.2f} | {mid('first'):.0f} | "
                   f"{mid('rss'):.0f} | {mid('faults'):.1f} |")
            print(row.replace(" nan ", "  "))


main(sys.argv[1:])
