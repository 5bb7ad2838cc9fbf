#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A leak scan does not end where memory was kept from forks or is protected, and finds the pointers that lie
there, tagged ones too; says of a lost object that a dead word of a stack points to it; and learns that a site
whose unreachable objects are freed later hides its pointers, which the report says."""
import json
import os
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["TM_SRC"], "tests/tools"))
from ledger_file import area
from scanning import STOP, Subject, header

s = Subject("ledgers", "scan_care_subject")


def scan():
    s.scan(STOP)
    return {kind: [[s.bit(plane, at) for plane in range(4)] for k, at in s.objects if k == kind] for kind, _ in s.objects}


time.sleep(.3)
scan()
for _ in range(5):
    time.sleep(.5)
    kinds = scan()
    # words that only look like a pointer keep a block now and then: in no scan again and again
    if [b[3] for b in kinds["stale"]] == [1]:
        break
opaque = struct.unpack_from("<Q", s.head, header["opaque_bytes"][0])[0]
print({k: [sum(b[p] for b in v) for p in range(4)] for k, v in kinds.items()}, "opaque", opaque)
# the protected pages nobody can read; the others, where the kernel lets a child read its parent
held = {"tagged", "nan", "behind"} | ({"dontfork", "dontfork-block"} if opaque == 4 * 4096 else set())
assert opaque in (4 * 4096, 4 * 4096 + 65536 + 4096 * 64), opaque
for kind in held:
    assert not any(b[0] for b in kinds[kind]), kind
assert sum(b[1] for b in kinds["lost"]) >= 19 and not any(b[3] for b in kinds["lost"]), kinds["lost"]
assert [b[0] for b in kinds["stale"]] == [b[3] for b in kinds["stale"]] == [1], kinds["stale"]
# scans more than a renewal apart
for _ in range(4):
    time.sleep(1.3)
    scan()
suspects = list(struct.iter_unpack("<Q6I", s.ledger.m[area("SUSPECTS_AT"):area("SUSPECTS_AT") + 2048 * 32]))
by_judged = [x[1:] for x in suspects if x[0]]
print("once same judged freed hidden:", by_judged)
assert sum(x[4] for x in by_judged) == 1, "the hidden site is learnt, no other"
DEAD_WORD = "blocks that only a dead word of a stack still points to: "


def report():
    done = subprocess.run([os.environ["TM_BUILD"] + "/tiermalloc", "report", "--json", s.path], capture_output=True,
                          text=True, check=True)
    return json.loads(done.stdout)


# right after a renewal the hidden site's blocks are too young to be judged, and a chance word may hold the stale one
for _ in range(20):
    hidden = s.word("scan_hidden")
    doc = report()
    if hidden > 0 and any(b.startswith(DEAD_WORD) for b in doc["blind_spots"]):
        break
    time.sleep(.7)
    scan()
sites = {x["id"]: x for x in doc["sites"]}
sizes = [sites[leak["site"]]["size_max"] for leak in doc["leaks"] if leak["class"] == "unreachable"]
assert 112 in sizes and 80 not in sizes, sizes
assert hidden > 0 and any("not judged" in b for b in doc["blind_spots"]), doc["blind_spots"]
assert any(b.startswith(DEAD_WORD) for b in doc["blind_spots"]), doc["blind_spots"]
assert s.p.poll() is None
s.p.kill()
s.p.wait()
