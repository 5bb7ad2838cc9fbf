# SPDX-License-Identifier: MIT
# What scripts here read of a ledger; offsets as in shim/base/ledger_format.h.
import mmap, os, re, struct, subprocess

FORMAT = open(os.path.join(os.environ["TM_SRC"], "shim/base/ledger_format.h")).read()


def area(name):
    m = re.search(r"#define TM_LEDGER_%s\s+\(\(uint64_t\)(\d+) << (\d+)\)" % name, FORMAT)
    return int(m.group(1)) << int(m.group(2))


def fields(struct_name):
    """Offsets of a structure's members, by the compiler."""
    import tempfile
    body = FORMAT[FORMAT.index("struct %s {" % struct_name):].split("\n};")[0].split("\n")[1:]
    names = []
    for line in body:
        m = re.match(r"\t(?:unsigned )?(?:\w+) ([\w, \[\]]+);", line)
        if m and ":" not in line.split(";")[0]:
            names += [re.sub(r"\[.*", "", n).strip() for n in m.group(1).split(",")]
    with tempfile.TemporaryDirectory() as d:
        c = "#include <stdio.h>\n#include \"shim/base/ledger_format.h\"\nint main(void){\n"
        for n in names:
            c += 'printf("%s %%zu %%zu\\n", offsetof(struct %s, %s), sizeof(((struct %s *)0)->%s));\n' % (n, struct_name, n, struct_name, n)
        c += 'printf("= %%zu 0\\n", sizeof(struct %s));}\n' % struct_name
        open(d + "/o.c", "w").write(c)
        subprocess.run(["gcc", "-I" + os.environ["TM_SRC"], "-o", d + "/o", d + "/o.c"], check=True)
        out = subprocess.run([d + "/o"], capture_output=True, text=True, check=True).stdout
    return {l.split()[0]: (int(l.split()[1]), int(l.split()[2])) for l in out.splitlines()}


class Ledger:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
        self.layout = {}
        self.header = self.record("header", 0)

    def record(self, name, at):
        if name not in self.layout:
            self.layout[name] = fields("tm_ledger_" + name)
        r = {}
        for n, (off, size) in self.layout[name].items():
            raw = self.m[at + off:at + off + size]
            r[n] = int.from_bytes(raw, "little") if size in (1, 2, 4, 8) else raw
        return r

    def table(self, name, where, count):
        self.record(name, area(where))
        size = self.layout[name]["="][0]
        return [self.record(name, area(where) + i * size) for i in range(count)]

    def stacks(self):
        """[(site, height, [frames], record)]"""
        got = []
        for i in range(self.header["stacks"]):
            at = area("STACKS_AT") + i * 32
            word, = struct.unpack_from("<Q", self.m, at)
            frames_at, n, unwinder, truncated, epoch, samples = struct.unpack_from("<IHBBII", self.m, at + 8)
            frames = struct.unpack_from("<%dQ" % n, self.m, area("FRAMES_AT") + 8 * frames_at)
            got.append((word & (1 << 48) - 1, word >> 48, list(frames),
                        {"unwinder": unwinder, "truncated": truncated, "epoch": epoch, "samples": samples}))
        return got

    def modules(self):
        got = self.table("module", "MODULES_AT", self.header["modules"])
        for m in got:
            m["path"] = m["path"].split(b"\0")[0].decode()
            m["build_id"] = m["build_id"][:m["build_id_bytes"]].hex()
        return got
