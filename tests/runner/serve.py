#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""serve-load: answers depend on nothing but model, prompt and seed; memory that is short is waited
for or refused and counted; request files are read strictly; statistics have the promised keys."""
import json
import os
import pty
import subprocess

import claims
from claims import check

RUN = os.path.join(os.environ["TM_BUILD"], "yi-coder-run")


def serve(*options, model="tiny.gguf"):
    done = subprocess.run([RUN, "serve-load", "-m", model, "--quiet", "--answers", "answers",
                           "--stats", "stats", *options], capture_output=True, text=True)
    answers = {}
    if done.returncode == 0:
        with open("answers", encoding="utf-8") as f:
            for line in f:
                answer = json.loads(line)
                answers[answer["session"]] = answer
    stats = json.load(open("stats")) if done.returncode == 0 else {}
    return done, answers, stats


def same_answers():
    load = ["--sessions", "60", "--seed", "3", "-n", "24", "-c", "96", "--temp", "1"]
    _, want, stats = serve(*load, "--concurrency", "1")
    check("one at a time", len(want) == 60 and stats["sessions"]["finished"] == 60, stats)
    peak = serve(*load, "--concurrency", "16")[2]["peak_live_bytes"]
    ways = {
        "16 at a time": ["--concurrency", "16"],
        "all at once, two threads": ["--concurrency", "60", "-t", "2"],
        "full buffers": ["--concurrency", "16", "--kv-alloc", "full"],
        "rings": ["--concurrency", "16", "--kv-alloc", "ring"],
        "small batches, three threads": ["--concurrency", "16", "--batch", "7", "-t", "3"],
        "no idle buffers": ["--concurrency", "16", "--kv-pool", "0"],
        "model read into memory": ["--concurrency", "16", "--load", "read"],
        "peak as limit": ["--concurrency", "16", "--memory-limit", str(peak)],
        "half of the peak": ["--concurrency", "16", "--memory-limit", str(peak // 2)],
        "a third of the peak": ["--concurrency", "16", "--memory-limit", str(peak // 3)],
    }
    for name, way in ways.items():
        done, got, stats = serve(*load, *way)
        check(name, got == want, done.stderr or stats)
        if "limit" in " ".join(way):
            # Blocks are a little larger than what was asked for.
            check(name + " holds", stats["peak_live_bytes"] <= int(way[-1]) * 1.02, stats)
    check("a third: sessions waited", stats["serve"]["waits"] > 0, stats)

    done, got, stats = serve(*load, "--concurrency", "16", "--memory-limit", str(peak // 6))
    s = stats["sessions"]
    check("next to no memory", done.returncode == 0 and s["started"] == 60 and s["failed"] > 0 and
          s["finished"] + s["failed"] == 60, stats)
    check("those that finished are right",
          all("failed" in a or a == want[n] for n, a in got.items()), got)


def sharing():
    lines = [{"session": "common", "prompt": "You are a helpful assistant. " * 3, "n": 3}]
    alone = []
    for i in range(6):
        lines.append({"session": f"s{i}", "prefix": "common", "prompt": f"Question {i}", "n": 20})
        alone.append({"session": f"s{i}", "tokens": None, "n": 20})
    lines.append({"session": "deeper", "prefix": "s0", "prompt": " and more", "n": 20})
    with open("requests", "w") as f:
        f.writelines(json.dumps(line) + "\n" for line in lines)
    plain = serve("--requests", "requests", "-c", "256", "--greedy", "--memory-limit", "1G")[1]
    ids = {}
    for line in lines:
        out = subprocess.run([RUN, "-m", "tiny.gguf", "--tokenize", line["prompt"]],
                             capture_output=True, text=True).stdout
        ids[line["session"]] = ids.get(line.get("prefix"), []) + [int(i) for i in out.split()]
    with open("alone", "w") as f:
        f.writelines(json.dumps({"session": name, "tokens": tokens, "n": 20 if name != "common" else 3})
                     + "\n" for name, tokens in ids.items())
    for alloc in "grow", "full", "ring":
        _, got, stats = serve("--requests", "requests", "-c", "256", "--greedy", "--kv-alloc", alloc)
        check(f"shared prompts, {alloc}", stats["serve"]["prefix_hits"] == 7, stats)
        _, want, stats = serve("--requests", "alone", "-c", "256", "--greedy", "--kv-alloc", alloc)
        check(f"the same without sharing, {alloc}",
              got == want == plain and stats["serve"]["prefix_hits"] == 0, stats)


def long_answers():
    with open("requests", "w") as f:
        for i in range(8):
            f.write(json.dumps({"tokens": [300 + i], "n": 100}) + "\n")
    want = None
    for options in ["--concurrency", "1"], ["--concurrency", "8"], ["--kv-alloc", "full", "-t", "2"]:
        _, got, stats = serve("--requests", "requests", "-c", "32", "--seed", "9", *options)
        check("contexts are shifted", stats["sessions"]["finished"] == 8 and
              stats["serve"]["context_shifts"] > 8, stats)
        want = want or got
        check("and answers stay the same", got == want, options)
    _, got, stats = serve("--requests", "requests", "-c", "32", "--kv-alloc", "ring")
    check("rings go on", stats["sessions"]["finished"] == 8 and
          stats["serve"]["context_shifts"] == 0 and
          max(a["generated"] for a in got.values()) == 100, stats)


def arrivals():
    with open("requests", "w") as f:
        f.write(json.dumps({"tokens": [300], "n": 2, "arrive_ms": 2000}) + "\n")
    _, _, stats = serve("--requests", "requests")
    ms = stats["serve"]["seconds"] * 1000
    check("arrivals are waited for", ms >= 2000, stats)
    # Whatever the answer took, none of the wait is in it.
    check("and first tokens counted from them", stats["first_token_ms"]["max"] <= ms - 1990, stats)


def repeated_requests():
    with open("requests", "w") as f:
        f.write('{"session": "a", "prompt": "Hello", "n": 3}\n')
        f.write('{"session": "b", "prefix": "a", "tokens": [300], "n": 2}\n')
    _, got, stats = serve("--requests", "requests", "--sessions", "7", "--greedy")
    check("requests are repeated", len(got) == 7 and stats["sessions"]["finished"] == 7 and
          stats["serve"]["prefix_hits"] == 3, stats)
    check("and answered alike", {(a["generated"], a["text"]) for n, a in got.items() if n[0] == "a"} ==
          {(got["a"]["generated"], got["a"]["text"])}, got)
    _, got, _ = serve("--requests", "requests", "--sessions", "1")
    check("or only the first taken", list(got) == ["a"], got)


def progress():
    """On a terminal, and only there."""
    master, slave = pty.openpty()
    command = [RUN, "serve-load", "-m", "tiny.gguf", "--sessions", "100000", "--concurrency", "4"]
    load = subprocess.Popen(command, stderr=slave)
    os.close(slave)
    shown = b""
    while shown.count(b"\r") < 2 and load.poll() is None:
        shown += os.read(master, 4096)
    load.kill()
    load.wait()
    os.close(master)
    check("progress on a terminal", shown.startswith(b"\rsessions ") and b"tokens/s" in shown, shown)
    piped = subprocess.run(command[:5] + ["30", "--concurrency", "4"], capture_output=True)
    check("and not in a pipe", b"\r" not in piped.stderr and piped.stdout == b"", piped.stderr)


def bad_requests():
    bad = {
        '{"prompt": "a", "colour": 1}': "colour", '{"prompt": 1}': "prompt", '{"n": 3}': "prompt",
        '{"prompt": "a", "tokens": [1]}': "prompt", '{"tokens": []}': "tokens",
        '{"tokens": [1, 99999999]}': "tokens", '{"tokens": [1.5]}': "tokens",
        '{"tokens": [1, "a"]}': "tokens", '{"tokens": [-1]}': "tokens",
        '{"prompt": "a", "n": 0}': "n", '{"prompt": "a", "n": 1e99}': "n",
        '{"prompt": "a", "n": "4"}': "n", '{"prompt": "a", "arrive_ms": -1}': "arrive_ms",
        '{"prompt": "a", "prefix": "nobody"}': "prefix", '{"prompt": "a", "session": 3}': "session",
        '{"prompt": "a", "prompt": "b"}': "prompt", '["prompt"]': "json", '{"prompt": "a"} x': "json",
        '{"prompt": "a",}': "json", '{"prompt": "\x01"}': "prompt", '{"prompt": "\\ud800"}': "prompt",
        '{"prompt": "a"': "json", '{prompt: "a"}': "json", "{}": "prompt", '{"prompt": "\\q"}': "prompt",
        '{"prompt": "a", "n": 01}': "n", '{"prompt": "a", "session": "a\\u0000b"}': "session",
    }
    for line, key in bad.items():
        with open("bad", "w") as f:
            f.write('{"prompt": "good"}\n' + line + "\n")
        done = serve("--requests", "bad")[0]
        check(f"refused: {line!r}", done.returncode == 2 and
              done.stderr.startswith(f"yi-coder-run: bad:2: {key}: ") and
              done.stderr.count("\n") == 1, (done.returncode, done.stderr))
    with open("bad", "wb") as f:
        f.write(b'{"prompt": "\xff"}\n')
    check("refused: no UTF-8", serve("--requests", "bad")[0].returncode == 2)
    open("bad", "w").close()
    check("refused: empty", serve("--requests", "bad")[0].returncode == 2)
    check("refused: no file", serve("--requests", "nowhere")[0].returncode == 2)
    for options in [["--sessions"], ["--sessions", "0"], ["--sessions", "x"], ["--memory-limit", "1X"],
                    ["--kv-alloc", "some"], ["--frobnicate"], ["--temp", "nan"], ["--share", "2"]]:
        check(f"usage: {options}", serve(*options)[0].returncode == 2)
    # A prompt that fits no context is that session's trouble alone.
    with open("long", "w") as f:
        f.write(json.dumps({"session": "long", "tokens": [300] * 100}) + "\n")
        f.write(json.dumps({"session": "short", "tokens": [300], "n": 2}) + "\n")
    done, got, stats = serve("--requests", "long", "-c", "64")
    check("is told of in the answers", got.get("long", {}).get("failed") == "prompt fits no context" and
          "failed" not in got.get("short", {"failed": 1}), got)
    check("too long a prompt", done.returncode == 0 and
          stats["sessions"] == {"started": 2, "finished": 1, "failed": 1}, stats)


def statistics():
    _, _, stats = serve("--sessions", "5")
    quantiles = {"p50", "p90", "p99", "p999", "max"}
    keys = ["prompt_tokens", "generated_tokens", "prefill_tokens_per_s", "decode_tokens_per_s",
            "peak_rss_bytes", "peak_vsz_bytes", "minor_faults", "major_faults", "cpu_s",
            "kv_bytes_per_token"]
    check("keys", all(isinstance(stats.get(key), (int, float)) for key in keys), stats)
    check("quantiles", all(quantiles <= set(stats[key]) for key in ("latency_ms", "first_token_ms")),
          stats)
    check("sessions", stats["sessions"] == {"started": 5, "finished": 5, "failed": 0}, stats)
    check("classes", set(stats["memory"]) >= {"weights", "kv", "activations", "tokenizer", "requests"},
          stats)
    check("bytes of a token", stats["kv_bytes_per_token"] == 2 * 2 * 2 * 64 * 2, stats)
    check("nothing stays", all(stats["memory"][c]["live_bytes"] == 0 for c in ("activations",)), stats)


subprocess.run([RUN, "make-model", "--shape", "tiny", "--seed", "1", "-o", "tiny.gguf"], check=True)
for part in (same_answers, sharing, long_answers, arrivals, repeated_requests, progress, bad_requests,
             statistics):
    part()
claims.end()
