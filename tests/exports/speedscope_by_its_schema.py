#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The speedscope files are valid by the schema that speedscope publishes."""
import json
import os
import subprocess

from common import NAMES, cached, expect, export, finish, path, skip

try:
    import jsonschema
except ImportError:
    skip("python3-jsonschema is not installed")


def fetch(folder):
    subprocess.run(["npm", "pack", "--silent", "speedscope"], cwd=folder, check=True, capture_output=True, timeout=100)
    package = next(n for n in os.listdir(folder) if n.startswith("speedscope-") and n.endswith(".tgz"))
    subprocess.run(["tar", "-xzf", package, "--strip-components=3", "package/dist/release/file-format-schema.json"],
                   cwd=folder, check=True, capture_output=True)
    os.remove(os.path.join(folder, package))


with open(cached("file-format-schema.json", fetch), encoding="utf-8") as f:
    schema = json.load(f)
validator = jsonschema.validators.validator_for(schema)(schema)
for name in NAMES:
    for e in validator.iter_errors(json.loads(export(path(name), "speedscope"))):
        expect(False, f"{name}: {'.'.join(map(str, e.absolute_path))}: {e.message[:200]}")
finish()
