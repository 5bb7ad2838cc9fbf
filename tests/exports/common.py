# SPDX-License-Identifier: MIT
# run: none
"""What the tests of exports share."""
import json
import os
import subprocess
import sys

SRC = os.environ["TM_SRC"]
TOOL = os.path.join(os.environ["TM_BUILD"], "tiermalloc")
REPORTS = os.path.join(SRC, "tests/data/reports")
NAMES = sorted(n[:-5] for n in os.listdir(REPORTS) if n.endswith(".json"))
problems = []


def path(name):
    return os.path.join(REPORTS, name + ".json")


def report(name):
    with open(path(name), encoding="utf-8") as f:
        return json.load(f)


def export(source, form, *options, to="out"):
    """The exported file's bytes."""
    run = subprocess.run([TOOL, "export", "--format", form, source, "-o", to, *options], capture_output=True)
    if b"built without jansson" in run.stderr:
        skip("this build reads no JSON: jansson is missing")
    if run.returncode != 0 or run.stderr or run.stdout:
        sys.exit(f"export --format {form} {source}: status {run.returncode}\n{run.stderr.decode()}")
    with open(to, "rb") as f:
        return f.read()


def number(value):
    """A count of the schema: a string from 2^53 on, unknown counts as nothing."""
    return int(value or 0)


def total(doc, key):
    return sum(number(s[key]) for s in doc["sites"])


def expect(holds, what):
    if not holds:
        problems.append(what)


def same(got, want, what):
    expect(got == want, f"{what}: {got!r}, expected {want!r}")


def skip(why):
    print(why)
    sys.exit(77)


def cached(name, make):
    """A file fetched once per build tree; make(folder) fetches, or the test is skipped."""
    folder = os.path.join(os.environ["TM_BUILD"], "tests/exports/cache")
    file = os.path.join(folder, name)
    os.makedirs(folder, exist_ok=True)
    if not os.path.exists(file):
        try:
            make(folder)
        except (OSError, subprocess.SubprocessError) as e:
            skip(f"{name} cannot be had here: {e}")
    if not os.path.exists(file):
        skip(f"{name} cannot be had here")
    return file


def finish():
    for p in problems[:40]:
        print(p)
    sys.exit(1 if problems else 0)
