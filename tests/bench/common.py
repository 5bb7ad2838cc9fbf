# SPDX-License-Identifier: MIT
"""What the sections of the benchmark book share: allocators by name, and a run under one of them."""
import os
import statistics
import subprocess

HERE = os.environ.get("TM_BENCH", os.path.dirname(os.path.abspath(__file__)))


class Allocator:
    """NAME=PATH[,ENV=VALUE..]; an empty path is libc's own."""

    def __init__(self, text):
        self.name, _, rest = text.partition("=")
        self.path, *pairs = rest.split(",")
        self.extra = dict(p.split("=", 1) for p in pairs)

    def environment(self):
        env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith("TIERMALLOC")}
        env.update(self.extra)
        if self.path:
            env["LD_PRELOAD"] = self.path
        return env

    def run(self, command, **more):
        return subprocess.run(command, env=self.environment(), capture_output=True, text=True, check=False,
                              timeout=1200, **more)


def table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|---" + "|--:" * (len(head) - 1) + "|")
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")


def spread(values, form="%.2f"):
    """The median, and in brackets the range."""
    return (form + " [" + form + ".." + form + "]") % (statistics.median(values), min(values), max(values))
