# SPDX-License-Identifier: MIT
"""Claims of one test: counted, and told at its end as tests/run expects it."""
import sys

passed = failed = 0


def check(name, holds, shown=""):
    """Told where it does not hold."""
    global passed, failed
    passed += bool(holds)
    failed += not holds
    if not holds:
        print(f"FAILED: {name}: {shown}")


def tell(name, holds, shown=""):
    """Told with its figures in any case."""
    check(name, holds, shown)
    if holds:
        print(f"ok: {name} {shown}")


def end():
    print(f"{passed} passed, {failed} failed, 0 skipped")
    sys.exit(failed > 0)
