#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
H84: an unknown TIERMALLOC_ name or a bad value costs one line on stderr that names
the variable and the value; the program runs on with its own status. Foreign variables are never
an error. Random bytes in any variable neither end the program nor flood stderr.
Failure: abort, silence, or more lines than variables.
"""
import os
import random
import re
import subprocess
import sys

LIB = os.environ["TM_LIB"]
CLOSED = ["TIERMALLOC", "TIERMALLOC_HUGE", "TIERMALLOC_GIVEBACK", "TIERMALLOC_SOURCE_DROP", "TIERMALLOC_GUARD",
          "TIERMALLOC_ON_ERROR", "TIERMALLOC_ALIGN", "TIERMALLOC_LEDGER", "TIERMALLOC_REPORT",
          "TIERMALLOC_LEAK_WINDOW_MS", "TIERMALLOC_CUDA", "TIERMALLOC_THREAD", "TIERMALLOC_LOG",
          "TIERMALLOC_FILL", "TIERMALLOC_POOLS", "TIERMALLOC_PERSISTENT_MAX", "TIERMALLOC_SESSION_KEEP",
          "TIERMALLOC_TEMPORARY_DECAY", "TIERMALLOC_NUMA"]
OPEN = ["TIERMALLOC_RULES", "TIERMALLOC_PROFILE", "TIERMALLOC_DIR", "TIERMALLOC_REPORT_FILE", "TIERMALLOC_TARGET",
        "TIERMALLOC_TRACE", "TIERMALLOC_DEEPBIND", "TIERMALLOC_CONF", "TIERMALLOC_CUDA_POOL",
        "TIERMALLOC_CUDA_KEEP", "TIERMALLOC_CUDA_FREE_SYNC", "TIERMALLOC_CUDA_HOST_POOL"]
FOREIGN = {"MALLOC_CONF": "dirty_decay_ms:banana", "MALLOC_ARENA_MAX": "-7", "MALLOC_TRIM_THRESHOLD_": "x",
           "TCMALLOC_RELEASE_RATE": "quick", "MIMALLOC_SHOW_STATS": "1", "GLIBC_TUNABLES": "glibc.malloc.check=3",
           "MALLOC_CHECK_": "3", "MALLOC_PERTURB_": "85", "MALLOC_TOP_PAD_": "999999999999999999999"}
CUDA_CLOSED = ["TIERMALLOC_CUDA_POOL", "TIERMALLOC_CUDA_KEEP", "TIERMALLOC_CUDA_FREE_SYNC",
               "TIERMALLOC_CUDA_HOST_POOL"]
REASON = re.compile(rb"no such folder|no such file|too long a name")
bad = 0


def run(env, command=("/bin/sh", "-c", "exit 5")):
    base = {k: v for k, v in os.environb.items() if not k.startswith(b"TIERMALLOC")}
    base.update({os.fsencode(k): os.fsencode(v) for k, v in env.items()})
    base[b"LD_PRELOAD"] = os.fsencode(LIB)
    return subprocess.run(command, env=base, capture_output=True)


def wrong(text):
    global bad
    bad += 1
    if bad <= 20:
        print("wrong: " + text)


def expect_one_line(name, value, shown=None):
    # exec'd directly: a shell and its children would say it once each
    r = run({name: value}, ("/bin/echo", "here"))
    lines = r.stderr.splitlines()
    ours = [line for line in lines if line.startswith(b"tiermalloc: ")]
    key = os.fsencode(shown or name)
    if r.returncode != 0 or r.stdout != b"here\n":
        wrong(f"{name}={value!r:.60}: status {r.returncode}, {r.stdout!r}")
    elif len(lines) != 1 or len(ours) != 1 or key not in lines[0]:
        wrong(f"{name}={value!r:.60}: stderr is {r.stderr[:300]!r}")
    elif shown is None and len(value) < 40 and os.fsencode(value) not in lines[0]:
        wrong(f"{name}={value!r}: the line does not quote it: {lines[0]!r}")


def files():
    """What is no file of rules costs one line as well; a pipe without a writer does not hold the program up."""
    os.mkdir("folder")
    os.mkfifo("pipe")
    with open("long", "w", encoding="ascii") as to:
        to.write("# comment\n" * 110000 + "size=70K -> tier=session\n")
    with open("many", "w", encoding="ascii") as to:
        to.writelines(f"size={i + 65}K -> tier=session\n" for i in range(1000))
    expect_one_line("TIERMALLOC_PROFILE", "./many", "./many:513:")
    with open("pools", "w", encoding="ascii") as to:
        to.write("size>=64K -> pool=100000000\n")
    for name in ["TIERMALLOC_RULES", "TIERMALLOC_PROFILE"]:
        for value in ["./folder", "./pipe", "./none", "./long"]:
            expect_one_line(name, value)
        r = run({name: "./pools"}, ("/bin/dd", "if=/dev/zero", "of=/dev/null", "bs=1M", "count=1", "status=none"))
        if r.returncode != 0 or r.stderr.count(b"\n") != 1 or b"less memory" not in r.stderr:
            wrong(f"{name} with large pools: status {r.returncode}, stderr {r.stderr!r}")
    with subprocess.Popen(["/bin/sh", "-c", "sleep 0.2; echo 'size=1 -> banana'"], stdout=subprocess.PIPE) as writer:
        fd = writer.stdout.fileno()
        env = dict(os.environ, LD_PRELOAD=LIB, TIERMALLOC_RULES=f"/dev/fd/{fd}")
        r = subprocess.run(["/bin/echo", "here"], env=env, capture_output=True, pass_fds=[fd])
        if r.returncode != 0 or b"banana" not in r.stderr:
            wrong(f"rules from a pipe: status {r.returncode}, stderr {r.stderr!r}")


def all_at_once():
    """A bad value of every variable at once, each told."""
    r = run({name: "nonsense" for name in CLOSED + CUDA_CLOSED}, ("/bin/echo", "here"))
    for name in CLOSED + CUDA_CLOSED:
        if not re.search(rb"'nonsense' of %s,|%s='nonsense' has no effect" % (2 * (name.encode(),)), r.stderr):
            wrong(f"{name} is not told among all: {r.stderr[-300:]!r}")


def names_of_files():
    """A file's name neither begins a line nor steers a terminal; of a long one the reason stays."""
    for name in ["TIERMALLOC_RULES", "TIERMALLOC_PROFILE", "TIERMALLOC_DIR", "TIERMALLOC_TRACE",
                 "TIERMALLOC_REPORT_FILE"]:
        for value in ["/none/a\nb\x1b[31m/\x7fc", "none/" * 700, "none/" * 3000]:
            env = {"TIERMALLOC_REPORT": "exit"} if name == "TIERMALLOC_REPORT_FILE" else {}
            r = run(dict(env, **{name: value}), (sys.executable, "-c", "print('here')"))
            lines = r.stderr.split(b"\n")[:-1]
            if r.returncode != 0 or r.stdout != b"here\n" or b"none" not in r.stderr:
                wrong(f"{name}={value!r:.60}: status {r.returncode}, stderr {r.stderr!r}")
            for line in lines:
                if not line.startswith(b"tiermalloc: ") or re.search(rb"[\0-\x1f\x7f]", line):
                    wrong(f"{name}={value!r:.60}: a line is {line!r}")
                elif not REASON.search(line):
                    wrong(f"{name}={value!r:.60}: no reason in {line!r}")


def main():
    clean = run({}, ("/bin/echo", "here"))
    if clean.returncode or clean.stderr:
        wrong(f"no variable: status {clean.returncode}, stderr {clean.stderr!r}")
    for name in CLOSED:
        for value in ["banana", "-12Q", "99999999999999999999999999", "x" * 5000]:
            expect_one_line(name, value)
    for name in ["TIERMALLOC_NO_SUCH", "TIERMALLOC_REPROT", "TIERMALLOC_"]:
        expect_one_line(name, "1")
    expect_one_line("TIERMALLOC_CONF", "nonsense=1", "nonsense")
    expect_one_line("TIERMALLOC_CONF", "huge=purple", "purple")
    for value in ["huge=never:giveback=eager", "target=a\\:b\\\\c", ""]:
        r = run({"TIERMALLOC_CONF": value}, ("/bin/echo", "here"))
        if r.returncode or r.stderr:
            wrong(f"TIERMALLOC_CONF={value!r}: status {r.returncode}, stderr {r.stderr!r}")
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    expect_one_line("TIERMALLOC_POOLS", f"1M*{(memory >> 20) + 1000}", "no pool")
    files()
    all_at_once()
    names_of_files()
    for name, value in FOREIGN.items():
        r = run({name: value})
        if r.returncode != 5 or len(r.stderr.splitlines()) > 1:
            wrong(f"{name}={value}: status {r.returncode}, stderr {r.stderr!r}")
    rng = random.Random(84)
    for i in range(150):
        env = {}
        for name in rng.sample(CLOSED + OPEN, rng.randint(1, 6)):
            size = rng.choice([0, 1, 7, 40, 3000])
            env[name] = bytes(rng.randrange(1, 256) for _ in range(size))
        env = {k: os.fsdecode(v) for k, v in env.items()}
        r = run(env, ("/bin/echo", "here"))
        limit = sum(1 + v.count(":") + v.count(";") + v.count("\n") for v in env.values())
        if r.returncode != 0 or r.stdout != b"here\n":
            wrong(f"fuzz {i}: status {r.returncode}, env {env!r:.300}")
        ours = [line for line in r.stderr.split(b"\n") if line.startswith(b"tiermalloc: ")]
        # a report was asked for by chance: its lines are no complaints
        if len(ours) > limit and "exit" not in env.get("TIERMALLOC_REPORT", ""):
            wrong(f"fuzz {i}: {len(ours)} lines for {len(env)} variables: {r.stderr[:400]!r}")
    print(f"{bad} wrong")
    return 1 if bad else 0


sys.exit(main())
