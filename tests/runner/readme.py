#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What README shows of the runner runs as it stands there."""
import os
import re
import subprocess
import sys

BUILD = os.environ["TM_BUILD"]
with open(os.path.join(os.environ["TM_SRC"], "README.md"), encoding="utf-8") as f:
    blocks = [b for b in re.findall(r"^```\n(.*?)^```", f.read(), re.M | re.S) if "yi-coder-run make-model" in b]
if not os.path.exists(os.environ["TM_LIB"]):
    print("the library is not built")
    sys.exit(77)
for block in blocks:
    done = subprocess.run(["sh", "-e"], input=block, env=dict(os.environ, PATH=BUILD + ":" + os.environ["PATH"]),
                          capture_output=True, text=True)
    print(done.stdout + done.stderr)
    if done.returncode or "tiermalloc:" in done.stderr or "finished 0 failed" not in done.stderr:
        sys.exit(1)
sys.exit(0 if blocks else 1)
