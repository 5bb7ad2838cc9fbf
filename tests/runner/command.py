#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a stranger types: every mistake ends with the promised status and one line that names the
option, value or file and the reason; signals end a run with its figures; no file is left half
written and no closed or full output goes unnoticed."""
import json
import os
import resource
import signal
import subprocess
import time

import claims
from claims import check

RUN = os.path.join(os.environ["TM_BUILD"], "yi-coder-run")
TICK = os.sysconf("SC_CLK_TCK")
ONE, SERVE, MAKE, INFO = ["-m", "tiny.gguf"], ["serve-load", "-m", "tiny.gguf"], ["make-model"], ["info", "tiny.gguf"]


def run(args, **more):
    more.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([RUN, *args], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **more)


def refused(args, status, *words, **more):
    done = run(args, **more)
    line = done.stderr
    check(f"{args} is refused", done.returncode == status and line.count("\n") == 1 and
          line.startswith("yi-coder-run: ") and all(w in line for w in words), (done.returncode, line))


def limited(kind, value):
    return {"preexec_fn": lambda: resource.setrlimit(kind, (value, value))}


def usage():
    refused([], 2, "-m", "--help")
    refused(["frobnicate"], 2, "unknown command 'frobnicate'", "--help")
    refused(["-m"], 2, "-m needs a value")
    refused([*SERVE, "more"], 2, "unexpected argument 'more'")
    refused([*MAKE, "more"], 2, "unexpected argument 'more'")
    refused([*INFO, "more"], 2, "unexpected argument 'more'")
    refused([*MAKE, "--frob", "x"], 2, "unknown option '--frob'")
    refused([*INFO, "--frob", "x"], 2, "unknown option '--frob'")
    refused([*INFO, "--sessions"], 2, "--sessions needs a value")
    refused([*MAKE, "--shape", "tiny", "--type"], 2, "--type needs a value")
    refused(MAKE, 2, "--shape", "tiny")
    refused([*MAKE, "--shape", "huge", "-o", "x"], 2, "'huge'", "--shape", "smollm2-135m")
    refused([*MAKE, "--shape", "tiny"], 2, "-o FILE")
    refused([*MAKE, "--shape", "tiny", "--type", "Q9_9", "-o", "x"], 2, "'Q9_9'", "--type", "Q8_0")
    for option, value in (("--layers", "0"), ("--layers", "513"), ("--embd", "7"), ("--heads", "7"), ("--vocab", "3"),
                          ("--kv-heads", "3"), ("--ctx", "0")):
        refused([*MAKE, "--shape", "tiny", option, value, "-o", "x"], 2, "bad dimensions")
    check("and nothing is made", not os.path.exists("x"))
    many, big = "99999999999999999999", "4294967296"
    numbers = {"-n": ["0", "-1", many, big, "1.5", "", "one", "1 "], "-t": ["0", "1025", many], "-c": ["0", big],
               "--seed": ["-1", big], "--top-k": ["-5", big], "--temp": ["nan", "inf", "-1", "1e39", ""],
               "--top-p": ["2", "-.1", "nan"], "--min-p": ["-1", "1.01"], "--repeat-penalty": ["0", "nan", "-1"],
               "--kv": ["q4"], "--kv-alloc": ["all"], "--load": ["mmapp"], "--populate": [""]}
    for option, values in numbers.items():
        for value in values:
            refused([*ONE, "-p", "a", option, value], 2, option)
    numbers = {"--concurrency": ["0", big], "--batch": ["0"], "--sessions": ["0", many], "--share": ["nan", "1.5", "-1"],
               "--memory-limit": ["-1", "1X", "99999999999T", ""], "--rate": ["nan", "-1"], "--limit-by": ["rss"],
               "-p": ["a"]}
    for option, values in numbers.items():
        for value in values:
            refused([*SERVE, option, value], 2, option)
    for option in "-c", "--sessions", "--batch":
        for value in "0", "-1", many, "x":
            refused([*INFO, option, value], 2, f"'{value}'", option)
    for tokens in "", "1,", ",1", "1,,2", "1,x", "-1", "1 2", many, "1024":
        refused([*ONE, "--tokens", tokens], 2, "--tokens")
    refused([*ONE, "-p", "a", "-f", "x"], 2, "exclude each other")
    for empty in [], ["-p", ""], ["-f", "/dev/null"]:
        refused([*ONE, *empty], 2, "no tokens")
    done = run(["--help"])
    check("--help", done.returncode == 0 and "serve-load" in done.stdout and not done.stderr, done)


def files():
    for args in ["-m", "nowhere", "-p", "a"], ["serve-load", "-m", "nowhere"], ["info", "nowhere"]:
        refused(args, 1, "nowhere", "No such file")
    refused(["-m", ".", "-p", "a"], 1, "not a regular file")
    refused([*ONE, "-f", "nowhere"], 1, "nowhere", "No such file")
    refused([*ONE, "-f", "."], 1, ".: cannot be read: Is a directory")
    refused([*INFO, "--measured", "nowhere"], 1, "nowhere")
    refused([*INFO, "--measured", "tiny.gguf"], 2, "not a file that --stats wrote")
    refused([*SERVE, "--requests", "."], 1, "directory")
    refused([*ONE, "--restore", "tiny.gguf"], 1, "tiny.gguf: not a saved state")
    refused([*ONE, "--restore", "/dev/null"], 1, "/dev/null: state ends")
    one = [*ONE, "-p", "a", "-n", "4", "--greedy", "--quiet"]
    for path, why in ("/dev/full", "No space left"), ("none/x", "No such file"), (".", "Is a directory"):
        for option in "--stats", "--logits", "--save":
            refused([*one, option, path], 1, path, why)
        for option in "--stats", "--answers":
            refused([*SERVE, "--quiet", "-n", "1", option, path], 1, path, why)
        refused([*MAKE, "--shape", "tiny", "-o", path], 1, path, why)
    size = limited(resource.RLIMIT_FSIZE, 100 << 10)
    refused([*MAKE, "--shape", "tiny", "-o", "big"], 1, "big", "File too large", **size)
    check("half a model is removed", not os.path.exists("big"))
    state = [*ONE, "--tokens", ",".join(["300"] * 200), "-n", "1", "--quiet", "--save", "state"]
    run([*ONE, "-p", "a", "-n", "2", "--quiet", "--save", "state"])
    before = open("state", "rb").read()
    refused(state, 1, "state", "File too large", **size)
    check("a state that can't be replaced stays", open("state", "rb").read() == before)
    check("and half a new one is removed", not [n for n in os.listdir() if n.startswith("state.")], os.listdir())
    with open("tiny.gguf", "rb") as f:
        model = f.read()
    with open("second.gguf", "wb") as f:
        f.write(model[:4] + b"\2" + model[5:])
    check("files of version 2", run(one).stdout == run(["-m", "second.gguf", *one[2:]]).stdout != "")
    os.chmod("state", 0o600)
    check("who may read a state stays", run([*one, "--save", "state"]).returncode == 0 and
          os.stat("state").st_mode & 0o777 == 0o600, oct(os.stat("state").st_mode))
    # What is no plain file is written to, not replaced.
    os.mkfifo("pipe")
    reader = subprocess.Popen(["wc", "-c", "pipe"], stdout=subprocess.PIPE, text=True)
    check("a pipe takes a state", run([*one, "--save", "pipe"]).returncode == 0)
    check("all of it", int(reader.communicate()[0].split()[0]) > 1000)


def outputs():
    one = [*ONE, "-p", "a", "-n", "4", "--greedy", "--quiet"]
    whole = run(one).stdout
    full = os.open("/dev/full", os.O_WRONLY)
    for args in (one, ["--version"], ["--help"], INFO, [*INFO, "--tensors"], [*ONE, "--tokenize", "a b"],
                 [*SERVE, "--quiet", "--stats", "-"]):
        refused(args, 1, "cannot be written", stdout=full)
        closed = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", RUN, *args], stderr=subprocess.PIPE, text=True)
        check(f"{args} with a closed output", closed.returncode == 1 and "cannot be written" in closed.stderr, closed)
    os.close(full)
    # A file that is opened doesn't become the output of the answer.
    subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", RUN, *one, "--logits", "rows"])
    check("the answer is in no other file", os.path.getsize("rows") % 4096 == 0, os.path.getsize("rows"))
    done = subprocess.run(["sh", "-c", 'exec "$@" <&- 2>&-', "sh", RUN, *one, "--stats", "stats"], capture_output=True, text=True)
    check("closed input and errors matter to nobody", done.stdout == whole and json.load(open("stats")), done)
    odd = "ä \U0001f600 \x01 " + "x" * 500
    check("odd prompts", run([*ONE, "-p", odd, "-n", "2", "--quiet"]).returncode == 0)
    raw = subprocess.run([RUN, *ONE, "-p", b"\xff\xfe\x80", "-n", "2", "--quiet"], capture_output=True)
    check("a prompt that is no UTF-8", raw.returncode == 0, raw)


def small():
    """Little memory, few threads: one line, or done."""
    for bytes in 1, 1000, 64 << 10:
        refused([*SERVE, "--quiet", "--memory-limit", str(bytes)], 1, "no memory", "--memory-limit")
    with open(RUN, "rb") as f:
        if b"__asan_init" in f.read():
            return  # its shadow memory needs terabytes of addresses
    for megabytes in range(3, 12):
        for args in [*ONE, "-p", "a", "-n", "2", "--quiet"], [*SERVE, "--quiet", "--sessions", "9"], INFO:
            done = run(args, **limited(resource.RLIMIT_AS, megabytes << 20))
            # 127: the loader itself got no memory, or by a signal before main.
            check(f"{megabytes} MiB, {args}", done.returncode in (0, 1, 127, -signal.SIGSEGV if megabytes < 5 else 0),
                  (done.returncode, done.stderr))
    done = run([*SERVE, "--quiet", "--sessions", "3", "--concurrency", "4294967294", "-c", "4294967294", "--batch", "1"])
    check("absurd sizes", done.returncode in (0, 1) and done.stderr.count("\n") <= 1, done)


# A shell that starts us in the background has this signal ignored, and a child would have it too.
signal.signal(signal.SIGINT, signal.default_int_handler)


def stopped(sig, *args, again=0):
    """Ended by a signal once it can be stopped in order, and by another after `again` seconds;
    (status, output, errors)."""
    process = subprocess.Popen([RUN, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not caught(process.pid, sig) and process.poll() is None:
        time.sleep(.01)
    # At work, however slow the machine is: either it has worked for a while, or it waits.
    before = None
    while process.poll() is None and (used := cpu_ticks(process.pid)) != before and used < .3 * TICK:
        before = used
        time.sleep(.3)
    process.send_signal(sig)
    if again:
        time.sleep(again)
        process.send_signal(sig)
    out, err = process.communicate()
    return process.returncode, out, err


def caught(pid, sig):
    """Whether the process catches the signal: not before it can be stopped in order."""
    with open(f"/proc/{pid}/status") as f:
        mask = next((line.split()[1] for line in f if line.startswith("SigCgt")), "0")
    return int(mask, 16) >> (sig - 1) & 1


def cpu_ticks(pid):
    """Processor time of the process, in ticks."""
    with open(f"/proc/{pid}/stat") as f:
        return sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13]))


def signals():
    load = [*SERVE, "--sessions", "20000", "--concurrency", "8", "-n", "200", "--stats", "stats", "--answers", "answers"]
    for sig in signal.SIGINT, signal.SIGTERM:
        status, _, err = stopped(sig, *load)
        stats = json.load(open("stats"))
        s = stats["sessions"]
        with open("answers", encoding="utf-8") as f:
            answers = [json.loads(line) for line in f]
        check(f"{sig.name} of a load", status == 128 + sig and "stopped by signal" in err and "sessions " in err,
              (status, err))
        check("its figures", s["started"] == s["finished"] + s["failed"] == len(answers) > 0, (s, len(answers)))
        check("those at work say so", 0 < sum(a.get("failed") == "stopped" for a in answers) <= 8, s)
    status, _, err = stopped(signal.SIGINT, *load, again=.01)
    check("a signal that a wrapper passes on again", status == 130 and "stopped by signal" in err, (status, err))
    with open("later", "w") as f:
        f.write('{"tokens": [300], "n": 1}\n{"tokens": [300], "n": 1, "arrive_ms": 1e8}\n')
    status, _, err = stopped(signal.SIGINT, *SERVE, "--requests", "later")
    check("a load that waits", status == 130, (status, err))
    # One answer: a wide ring and no end of it in sight.
    made = ["--shape", "tiny", "--layers", "8", "--embd", "512", "--ff", "2048"]
    run([*MAKE, *made, "-o", "slow.gguf"])
    status, _, err = stopped(signal.SIGTERM, "-m", "slow.gguf", "--tokens", ",".join(["300"] * 4000), "-n", "1", again=.7)
    check("a second signal ends it at once", status in (-15, 143, 0), (status, err))
    status, out, err = stopped(signal.SIGINT, "-m", "slow.gguf", "-p", "a", "-n", "100000", "-c", "64", "--kv-alloc", "ring",
                               "--save", "state", "--stats", "stats", "--seed", "1")
    if status:
        check("SIGINT of an answer", status == 130 and out.endswith("\n") and "decode" in err, (status, err))
        check("it can go on", run(["-m", "slow.gguf", "--restore", "state", "-n", "2", "--kv-alloc", "ring", "-c", "64",
                                   "--quiet"]).returncode == 0)
    ignoring = subprocess.run(["sh", "-c", 'trap "" INT; "$@" & kill -INT $!; wait $!', "sh", RUN, *ONE, "-p", "a", "-n", "2",
                               "--quiet"], capture_output=True)
    check("ignored signals stay so", ignoring.returncode == 0, ignoring)


run([*MAKE, "--shape", "tiny", "--seed", "1", "-o", "tiny.gguf"])
for part in usage, files, outputs, small, signals:
    part()
claims.end()
