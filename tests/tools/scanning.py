# SPDX-License-Identifier: MIT
# A program under a leak scan, and the verdicts on its objects: for scripts here. The program prints
# "KIND ADDRESS" lines, then "ready 0".
import mmap, os, struct, subprocess, sys, time

sys.path.insert(0, os.path.join(os.environ["TM_SRC"], "tests/tools"))
from ledger_file import Ledger, area, fields

SNAPSHOT, STOP = 1, 2
header = fields("tm_ledger_header")


class Subject:
    def __init__(self, how, program="scan_subject", window_ms=200):
        self.folder = os.getcwd() + "/" + how
        env = dict(os.environ, LD_PRELOAD=os.environ["TM_LIB"], TIERMALLOC_DIR=self.folder, TIERMALLOC_LEAK_WINDOW_MS=str(window_ms))
        self.p = subprocess.Popen([os.environ["TM_TESTS"] + "/" + program, how], env=env, stdout=subprocess.PIPE, text=True)
        self.objects = []
        for line in self.p.stdout:
            kind, at = line.split()
            if kind == "ready":
                break
            self.objects.append((kind, int(at, 16)))
        name, = [f for f in os.listdir(self.folder) if f.startswith("%d-" % self.p.pid)]
        self.path = self.folder + "/" + name
        self.ledger = Ledger(self.path)
        with open(self.path, "r+b") as f:
            self.head = mmap.mmap(f.fileno(), 4096)

    def word(self, name):
        return struct.unpack_from("<I", self.head, header[name][0])[0]

    def scan(self, level):
        struct.pack_into("<I", self.head, header["control"][0], level)
        seq = self.word("control_seq") + 1
        struct.pack_into("<I", self.head, header["control_seq"][0], seq)
        end = time.time() + 600
        while self.word("control_done") != seq:
            assert time.time() < end, "no answer"
            assert self.p.poll() is None, "it died: %s" % self.p.returncode
            time.sleep(.01)
        error = struct.unpack_from("<i", self.head, header["control_error"][0])[0]
        assert error == 0, error

    def bit(self, plane, at):
        m, h = self.ledger.m, self.ledger.header
        granule = (at - h["zone_base"]) >> 16
        base = (8 << 30) + plane * (256 << 20)
        for g in range(granule, max(granule - 200, -1), -1):
            kind, tier, heap, slot, slots, first, ident, age, where = struct.unpack_from("<BBHIHHHHQ", m, area("GRANULES_AT") + 24 * g)
            if kind == 0:
                continue
            if kind == 3:
                byte, n = base + (192 << 20) + g // 8, g % 8
            else:
                index = (at - h["zone_base"] - (g << 16)) // slot
                n = (where + index * (3 if kind == 1 else 8)) // 3
                byte, n = base + n // 8, n % 8
            return m[byte] >> n & 1
        raise AssertionError("no record for %x" % at)
