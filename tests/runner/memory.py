#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Memory of the runner: models are written in little of it, a mapped file is shared by those who
run it and read no further than needed, and info predicts what a run takes."""
import json
import os
import re
import subprocess
import time

import claims
from claims import tell as check

RUN = os.path.join(os.environ["TM_BUILD"], "yi-coder-run")
MIB = 1 << 20


def peak_kib(*args):
    proc = subprocess.Popen([RUN, *args], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(proc.pid, 0)
    proc.returncode = 0
    assert status == 0, args
    return usage.ru_maxrss


def mapping(pid, name):
    """Rss and Pss of the file's mapping in KiB."""
    rss = pss = 0
    with open(f"/proc/{pid}/smaps") as f:
        inside = False
        for line in f:
            if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
                inside = name in line
            elif inside and line.startswith("Rss:"):
                rss += int(line.split()[1])
            elif inside and line.startswith("Pss:"):
                pss += int(line.split()[1])
    return rss, pss


shapes = [("smollm2-135m", t) for t in ("F32", "Q4_K_M")]
if os.environ.get("TM_LONG"):
    shapes += [("yi-coder-1.5b", t) for t in ("F32", "Q8_0", "Q2_K")]
for shape, kind in shapes:
    kib = peak_kib("make-model", "--shape", shape, "--type", kind, "-o", "made.gguf")
    check(f"{shape} in {kind} is written in little memory", kib <= 100 << 10, f"{kib} KiB")
subprocess.run([RUN, "make-model", "--shape", "smollm2-135m", "--type", "Q8_0", "-o", "model.gguf"], check=True)
size = os.path.getsize("model.gguf")

# Nothing of the parameters is needed for counting tokens.
kib = peak_kib("-m", "model.gguf", "--tokenize", "Hello")
check("mapped and not populated", kib << 10 < size / 3, f"{kib >> 10} MiB of {size >> 20}")
kib = peak_kib("-m", "model.gguf", "--tokenize", "Hello", "--populate", "all")
check("mapped and populated", kib << 10 >= size, f"{kib >> 10} MiB")

two = [subprocess.Popen([RUN, "-m", "model.gguf", "-p", "while", "-n", "4000", "--populate", "all", "--seed", "1",
                         "--quiet"], stdout=subprocess.DEVNULL) for _ in range(2)]
deadline = time.monotonic() + 60
while time.monotonic() < deadline:
    time.sleep(.2)
    shares = [mapping(p.pid, "model.gguf") for p in two]
    if all(rss << 10 >= size * .99 for rss, _ in shares) or any(p.poll() is not None for p in two):
        break
for p in two:
    p.kill()
    p.wait()
for rss, pss in shares:
    check("two runners share the file", rss and pss <= .6 * rss, f"Rss {rss} KiB, Pss {pss} KiB")

subprocess.run([RUN, "-m", "model.gguf", "--tokens", ",".join(["300"] * 16), "-n", "8", "-c", "256", "--kv-alloc",
                "full", "--load", "read", "--quiet", "--seed", "3", "--stats", "stats"], check=True, stdout=subprocess.DEVNULL)
text = subprocess.run([RUN, "info", "model.gguf", "-c", "256", "--measured", "stats", "--batch", "16"], check=True,
                      capture_output=True, text=True).stdout
ratios = {m[0]: float(m[1]) for m in re.findall(r"^  (\w+) .*measured .* ([\d.]+) of it$", text, flags=re.M)}
for kind, low, high in (("weights", .99, 1.01), ("kv", .99, 1.02), ("tokenizer", .9, 1.1), ("activations", .8, 1.2)):
    check(f"{kind} are predicted", low <= ratios.get(kind, 0) <= high, ratios)
m = re.search(r"TIERMALLOC_POOLS=(\d+)\*(\d+)@session", text)
kv = json.load(open("stats"))["memory"]["kv"]["peak_bytes"]
check("pools fit", m and abs(int(m[1]) * int(m[2]) - kv) < .02 * kv, m and m[0])
done = subprocess.run([RUN, "-m", "model.gguf", "--tokens", "3,4,5", "-n", "4", "-c", "256", "--kv-alloc", "full", "--quiet"],
                      env=dict(os.environ, LD_PRELOAD=os.environ["TM_LIB"], TIERMALLOC_REPORT="exit",
                               TIERMALLOC_POOLS=m[0].split("=")[1] if m else ""), capture_output=True, text=True)
used = re.search(r"^  session +96.0 KiB +(\d+) +(\d+) +0 +0 +(\d+)$", done.stderr, flags=re.M)
check("proposed pools are used", used and used[1] == used[2] == used[3] and "tiermalloc:" not in done.stderr, done.stderr)
claims.end()
