#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A file of more than 600 lines has become a second thing. Tables and generated text are exempt."""
from common import GIVEN, files, finish, read

LIMIT = 600
# Tables that a script beside them writes.
TABLES = ("tools/runner/unicode_runs.h",)
names = [n for n in files(".c", ".h", ".cpp", ".S", ".py", ".sh", ".mk", "quickstart", "tests/run")
         if not n.startswith(GIVEN) and n not in TABLES]
problems = [f"{n}: {lines} lines, at most {LIMIT}" for n in names
            if (lines := read(n).count("\n")) > LIMIT]
if (lines := read("ARCHITECTURE.md").count("\n")) > 300:
    problems.append(f"ARCHITECTURE.md: {lines} lines, at most 300")
finish(problems, len(names), "files")
