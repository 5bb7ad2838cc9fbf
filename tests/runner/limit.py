#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 3600
"""Sessions in a process whose data may not pass 1.15 times what is live at the peak, by the kernel's
limit: at least 99.9 % of them finish with the library. A thousand; in soak ten thousand, as in the
benchmark book, whose program this runs."""
import os
import re
import subprocess
import sys

LIB = os.environ["TM_LIB"]
if not os.path.exists(LIB):
    print("the library is not built")
    sys.exit(77)
sessions = 10000 if os.environ.get("TM_LONG") else 1000
done = subprocess.run([sys.executable, os.path.join(os.environ["TM_SRC"], "tests/bench/serve_limit.py"), "-n",
                       str(sessions), "libc=", f"library={LIB}"], env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"),
                      capture_output=True, text=True)
print(done.stdout + done.stderr)
shares = dict(re.findall(r"^\| (\w+) \| ([\d.]+) %", done.stdout, re.M))
sys.exit(0 if done.returncode == 0 and float(shares["library"]) >= 99.9 and "libc" in shares else 1)
