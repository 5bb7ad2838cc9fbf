#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 3600
"""Each planted leak of leaks_subject and of Python is found at its line; innocent programs are not
flagged. All run at once with short windows. How fast they come depends on the machine: a leak is waited
for, an innocent is judged after so many windows, and one that is flagged is run again with other seeds, since
one in fifty may be (tests/unit/test_growth.c has the rates, over many seeds)."""
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time

TOOL = os.environ["TM_BUILD"] + "/tiermalloc"
SUBJECT = os.environ["TM_TESTS"] + "/leaks_subject"
SOURCES = os.environ["TM_SRC"] + "/tests/tools/"
LEAKS = ["plain", "unreachable", "reachable", "token", "tls", "static", "dlclosed", "coroutine", "exception",
         "pinned", "rare", "child"]
INNOCENTS = ["diurnal", "warm-up", "lru", "sessions", "ramp", "once", "doubling", "ring", "steady"]
SECONDS, INNOCENT_WINDOWS = 300, 110
AGAIN = 4
SEEDS = range(12) if os.environ.get("TM_LONG") else range(1)

LIST = """import time
queue = []
def request(text):
    queue.append(bytes(700))  # leaks: list
    body = bytes(100000)
    return [body, text]
while True:
    request("x")
    time.sleep(.0015)
"""
EXTENSION = r"""
#include <Python.h>
static PyObject *request(PyObject *self, PyObject *args)
{
	char *p = malloc(600); /* leaks: extension */
	(void)self, (void)args;
	memset(p, 1, 600);
	Py_RETURN_NONE;
}
static PyMethodDef methods[] = {{"request", request, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "leaky", NULL, -1, methods, NULL, NULL, NULL, NULL};
PyMODINIT_FUNC PyInit_leaky(void) { return PyModule_Create(&module); }
"""
USES_EXTENSION = "import leaky, time\nwhile True:\n    leaky.request()\n    x = bytes(100000)\n    time.sleep(.0015)\n"


def line_of(kind, source):
    for number, text in enumerate(open(source, encoding="utf-8"), 1):
        if "leaks: %s */" % kind in text or text.endswith("# leaks: %s\n" % kind):
            return os.path.basename(source), number
    raise SystemExit("no line marked 'leaks: %s'" % kind)


class Run:
    def __init__(self, name, command, where, through=None, seed=0):
        self.name, self.where = name, where
        self.folder = os.path.join(os.getcwd(), "ledgers-%s-%d" % (name, seed))
        env = dict(os.environ, TIERMALLOC_LEAK_WINDOW_MS="60", TIERMALLOC_DIR=self.folder, SEED=str(seed))
        if through is None:
            env["LD_PRELOAD"] = os.environ["TM_LIB"]
        self.process = subprocess.Popen((through or []) + command, env=env, start_new_session=True,
                                        stdout=subprocess.DEVNULL)

    def document(self):
        """Of the process that holds most; None while there is none."""
        try:
            ledgers = [os.path.join(self.folder, f) for f in os.listdir(self.folder)]
        except FileNotFoundError:
            return None
        for ledger in sorted(ledgers, key=lambda f: -os.stat(f).st_blocks):
            done = subprocess.run([TOOL, "leaks", "--json", "--no-scan", ledger], capture_output=True, text=True,
                                  check=False)
            if done.returncode not in (0, 3, 4):
                raise SystemExit("%s: status %d: %s" % (self.name, done.returncode, done.stderr))
            document = json.loads(done.stdout)
            if self.name != "child" or document["process"]["pid"] != self.process.pid:
                return document
        return None

    def growing(self):
        document = self.document()
        found = []
        for leak in document["leaks"] if document else []:
            if leak["class"] == "exit":
                continue
            site = next(s for s in document["sites"] if s["id"] == leak["site"])
            lines = []
            if site["stack"] is not None:
                for f in document["stacks"][site["stack"]]["frames"]:
                    frame = document["frames"][f]
                    lines.append((os.path.basename(frame["file"] or "?"), frame["line"]))
            found.append((leak, lines))
        return found, document

    def end(self):
        try:
            os.killpg(self.process.pid, 9)
        except ProcessLookupError:
            pass
        self.process.wait()


def python_runs():
    """Python's own, or why not."""
    with open("undrained.py", "w", encoding="utf-8") as f:
        f.write(LIST)
    where = line_of("list", "undrained.py") if (3, 11) <= sys.version_info < (3, 14) else None
    yield Run("list", [sys.executable, "undrained.py"], where, [TOOL, "run", "--python", "--"])
    include = sysconfig.get_paths()["include"]
    if not os.path.exists(include + "/Python.h") or not shutil.which("cc"):
        print("the Python extension is left out: no Python.h")
        return
    with open("leaky.c", "w", encoding="utf-8") as f:
        f.write(EXTENSION)
    subprocess.run(["cc", "-g", "-O1", "-shared", "-fPIC", "-fno-builtin-malloc", "-I" + include, "-o", "leaky.so",
                    "leaky.c"], check=True)
    yield Run("extension", [sys.executable, "-c", USES_EXTENSION], line_of("extension", "leaky.c"),
              [TOOL, "run", "--python", "--"])


def find(runs):
    """Those not found in time, with what was seen instead."""
    left, end, missed = list(runs), time.monotonic() + SECONDS, []
    while left and time.monotonic() < end:
        time.sleep(1)
        for run in list(left):
            found, _ = run.growing() if run.document() else ([], None)
            hits = [leak for leak, lines in found if run.where is None or run.where in lines]
            if hits:
                print("found  %-12s %s %s" % (run.name, hits[0]["class"], run.where or ""))
                run.end()
                left.remove(run)
    for run in left:
        found, document = run.growing() if run.document() else ([], None)
        missed.append("%s: %s, seen %s" % (run.name, document and document["verdict"]["text"],
                                           [lines[:3] for _, lines in found]))
        run.end()
    return missed


def judge(kinds, seeds):
    """The innocents that are called leaks."""
    batch, flagged = [Run(kind, [SUBJECT, kind], None, seed=seed) for kind in kinds for seed in seeds], []
    for run in batch:
        found, document = [], None
        while document is None or document["capture"]["windows"] < INNOCENT_WINDOWS:
            time.sleep(.5)
            found, document = run.growing()
        run.end()
        if found:
            flagged.append((run.name, [(leak["class"], lines[:3]) for leak, lines in found]))
    return flagged


def main():
    runs = []
    problems = []
    try:
        for kind in LEAKS:
            source = SOURCES + ("libleaks_plugin.c" if kind == "dlclosed" else "leaks_subject.cpp")
            runs.append(Run(kind, [SUBJECT, kind], line_of("plain" if kind == "child" else kind, source)))
        runs += python_runs()
        problems += find(runs)
    finally:
        for run in runs:
            run.end()
    flagged, innocents = [], 0
    for seed in SEEDS:
        flagged += judge(INNOCENTS, [seed + 1])
        innocents += len(INNOCENTS)
    print("innocents flagged: %d of %d: %s" % (len(flagged), innocents, flagged))
    for kind in sorted({kind for kind, _ in flagged}):
        again = judge([kind], [100 + n for n in range(AGAIN)])
        print("%s again: %d of %d" % (kind, len(again), AGAIN))
        if again:
            problems.append("an innocent is flagged again and again: %s" % again)
    if os.environ.get("TM_LONG") and len(flagged) > .02 * innocents:
        problems.append("innocents were flagged: %s" % flagged)
    for problem in problems:
        print("PROBLEM " + problem)
    return 1 if problems else 0


sys.exit(main())
