#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The library asks nobody for a CUDA symbol and needs no CUDA library (torch_memory_saver#50)."""
import os
import re
import subprocess
import sys

lib = os.environ["TM_LIB"]
symbols = subprocess.run(["readelf", "-W", "--dyn-syms", lib], capture_output=True, text=True, check=True).stdout
undefined = re.findall(r" UND (cu\w+)", symbols)
defined = re.findall(r" (?:GLOBAL|WEAK) +DEFAULT +\d+ (cu\w+)", symbols)
needed = re.findall(r"\(NEEDED\).*\[(.*)\]",
                    subprocess.run(["readelf", "-W", "-d", lib], capture_output=True, text=True, check=True).stdout)
have = "TM_HAVE_CUDA 1" in open(os.path.join(os.environ["TM_BUILD"], "config.h")).read()
problems = [f"asks for {s}" for s in undefined]
problems += [f"needs {n}" for n in needed if "cuda" in n]
if have and "cuMemAlloc_v2" not in defined:
    problems.append("does not define cuMemAlloc_v2")
if not have and defined:
    problems.append(f"built without the hooks, but defines {defined[0]}")
if "cuGetExportTable" in defined:
    problems.append("touches cuGetExportTable")
print("\n".join(problems) or f"{len(defined)} defined, none asked for")
sys.exit(1 if problems else 0)
