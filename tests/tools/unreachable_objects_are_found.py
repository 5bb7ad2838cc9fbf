#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# A scan of a running process, idle or busy, finds the objects that nothing points to, and no other:
# not those held by data, stacks, thread-local storage, registers, other mappings or inner pointers.
import os, subprocess, sys, time

sys.path.insert(0, os.path.join(os.environ["TM_SRC"], "tests/tools"))
from scanning import SNAPSHOT, STOP, Subject

def look(how, level):
    s = Subject(how)
    time.sleep(.5)
    s.scan(level)
    time.sleep(.6)
    s.scan(level)
    kinds = {}
    for kind, at in s.objects:
        kinds.setdefault(kind, []).append([s.bit(plane, at) for plane in range(3)])
    print(how, level, {k: (len(v), sum(b[0] for b in v), sum(b[1] for b in v), sum(b[2] for b in v)) for k, v in kinds.items()},
          "stopped", s.word("threads_stopped"), "missed", s.word("threads_missed"), "us", s.word("stop_us"))
    assert s.word("scan_passes") == 2
    for kind, bits in kinds.items():
        twice = sum(b[1] for b in bits)
        if kind.startswith("lost"):
            assert twice >= .97 * len(bits), "%s: only %d of %d" % (kind, twice, len(bits))
        elif kind == "register" and level == SNAPSHOT:
            pass
        else:
            assert sum(b[0] for b in bits) == 0, "%s: taken for lost" % kind
    assert sum(b[2] for b in kinds["lost-child"]) >= 95, "children of lost objects are indirect"
    assert sum(b[2] for b in kinds["lost"]) <= 5
    if level == STOP:
        # one of the two may itself make the image, where it was the next to come by
        assert s.word("threads_stopped") in (1, 2) and s.word("threads_missed") == 0
    assert s.p.poll() is None
    s.p.kill()
    s.p.wait()


for how in ("idle", "busy"):
    for level in (SNAPSHOT, STOP):
        look(how, level)
        subprocess.run(["rm", "-rf", how])
