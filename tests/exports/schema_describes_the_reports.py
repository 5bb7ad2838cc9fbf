#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The published JSON Schema is what the command writes by, and every golden report is valid by it."""
import copy
import os
import subprocess

from common import NAMES, SRC, TOOL, expect, export, finish, path, report, skip

import json

with open(os.path.join(SRC, "tools/document/report-1.schema.json"), encoding="utf-8") as f:
    published = f.read()
printed = subprocess.run([TOOL, "export", "--schema"], capture_output=True, text=True, check=True).stdout
expect(published == printed, "tools/document/report-1.schema.json differs from 'tiermalloc export --schema'")
schema = json.loads(published)
try:
    import jsonschema
    validator = jsonschema.Draft202012Validator(schema)
except (ImportError, AttributeError):
    if published != printed:
        finish()
    skip("python3-jsonschema 4 is not installed")
validator.check_schema(schema)
for name in NAMES:
    for source in (report(name), json.loads(export(path(name), "json"))):
        for e in validator.iter_errors(source):
            expect(False, f"{name}: {'.'.join(map(str, e.absolute_path))}: {e.message[:200]}")
# It must be able to refuse.
for spoil in (lambda d: d.pop("balance"), lambda d: d["process"].pop("ended"), lambda d: d.update(kind="other"),
              lambda d: d["sites"][0].update(live_bytes=1.5), lambda d: d["sites"][0].update(tier="fast"),
              lambda d: d["modules"][0].update(base="12")):
    bad = copy.deepcopy(report("server"))
    spoil(bad)
    expect(not validator.is_valid(bad), "a spoilt report is valid")
finish()
