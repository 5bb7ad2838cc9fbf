#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Malformed model files are refused: exit status 3, one line naming the file, a field and an
offset, no signal, little memory. Every file is a good one with one thing made wrong."""
import os
import re
import struct
import subprocess
import sys

RUN = os.path.join(os.environ["TM_BUILD"], "yi-coder-run")
RSS_LIMIT_KIB = 64 << 10
U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
SIZES = {U8: 1, I8: 1, U16: 2, I16: 2, U32: 4, I32: 4, F32: 4, BOOL: 1, U64: 8, I64: 8, F64: 8}


def text(s):
    b = s.encode() if isinstance(s, str) else s
    return struct.pack("<Q", len(b)) + b


class Model:
    """A file taken apart: values as (key, type, bytes), tensors as [name, dims, type, offset]."""

    def __init__(self, data):
        self.version = 3
        self.values, self.tensors, at = [], [], 24
        n_tensors, n_values = struct.unpack_from("<QQ", data, 8)
        self.n_tensors = self.n_values = None
        for _ in range(n_values):
            n, = struct.unpack_from("<Q", data, at)
            key = data[at + 8:at + 8 + n].decode()
            at += 8 + n
            kind, = struct.unpack_from("<I", data, at)
            at += 4
            end = self.end_of(data, at, kind)
            self.values.append([key, kind, data[at:end]])
            at = end
        for _ in range(n_tensors):
            n, = struct.unpack_from("<Q", data, at)
            name = data[at + 8:at + 8 + n]
            at += 8 + n
            dims, = struct.unpack_from("<I", data, at)
            ne = list(struct.unpack_from(f"<{dims}Q", data, at + 4))
            at += 4 + 8 * dims
            kind, offset = struct.unpack_from("<IQ", data, at)
            at += 12
            self.tensors.append([name, ne, kind, offset])
        self.data = bytearray(data[(at + 31) // 32 * 32:])
        self.n_dims = {}

    @staticmethod
    def end_of(data, at, kind):
        if kind == STRING:
            return at + 8 + struct.unpack_from("<Q", data, at)[0]
        if kind != ARRAY:
            return at + SIZES[kind]
        elem, count = struct.unpack_from("<IQ", data, at)
        at += 12
        for _ in range(count):
            at = Model.end_of(data, at, elem)
        return at

    def set(self, key, kind, raw):
        for v in self.values:
            if v[0] == key:
                v[1:] = [kind, raw]
                return
        self.values.append([key, kind, raw])

    def u32(self, key, number):
        self.set(key, U32, struct.pack("<I", number & 0xffffffff))

    def f32(self, key, number):
        self.set(key, F32, struct.pack("<f", number))

    def drop(self, key):
        self.values = [v for v in self.values if v[0] != key]

    def raw(self, key):
        return [v for v in self.values if v[0] == key][0][2]

    def tensor(self, name):
        return [t for t in self.tensors if t[0] == name.encode()][0]

    def head(self):
        out = b"GGUF" + struct.pack("<IQQ", self.version,
                                    len(self.tensors) if self.n_tensors is None else self.n_tensors & 2**64 - 1,
                                    len(self.values) if self.n_values is None else self.n_values & 2**64 - 1)
        for key, kind, raw in self.values:
            out += text(key) + struct.pack("<i", kind) + raw
        for t in self.tensors:
            name, ne, kind, offset = t
            out += text(name) + struct.pack("<I", self.n_dims.get(name, len(ne)))
            out += struct.pack(f"<{len(ne)}Q", *[n & 2**64 - 1 for n in ne])
            out += struct.pack("<iQ", kind, offset & 2**64 - 1)
        return out

    def bytes(self):
        head = self.head()
        return head + bytes(-len(head) % 32) + self.data


CASES = []


def case(name, field=""):
    def add(change):
        CASES.append((name, field, change))
        return change
    return add


def cases(field, function, *values):
    for v in values:
        CASES.append((f"{field} = {v!r}"[:70], field, lambda m, v=v: function(m, v)))


def value_case(key, kind, pack, *numbers, field=None):
    cases(key if field is None else field, lambda m, v: m.set(key, kind, struct.pack(pack, v)), *numbers)


def cut(part):
    def change(m):
        data = m.bytes()
        return data[:part(len(m.head()), len(data))]
    return change


# --- the frame -------------------------------------------------------------------------------
CASES += [("empty file", "", lambda m: b""), ("one byte", "", lambda m: b"G"),
          ("bad magic", "magic", lambda m: b"GGML" + m.bytes()[4:]),
          ("magic backwards", "magic", lambda m: b"FUGG" + m.bytes()[4:]),
          ("zeros", "magic", lambda m: bytes(4096))]
cases("version", lambda m, v: setattr(m, "version", v), 0, 1, 4, 0x02000000, 0x03000000, 0xffffffff)
cases("tensor_count", lambda m, v: setattr(m, "n_tensors", v), -1, 2**62, 65537, 2**32, 2**61 + 1, 60000)
cases("metadata_kv_count", lambda m, v: setattr(m, "n_values", v), -1, 2**62, 65537, 2**60, 1 << 20)
CASES += [(f"cut at {n}", "", cut(lambda head, size, n=n: n)) for n in (4, 7, 8, 15, 16, 23, 24, 30, 33, 40, 100, 5000)]
CASES += [("cut in the last description", "", cut(lambda head, size: head - 3)),
          ("cut behind the descriptions", "", cut(lambda head, size: head)),
          ("cut in the padding before data", "", cut(lambda head, size: head - head % 32 + 1 if head % 32 else head - 1)),
          ("cut in the first tensor", "", cut(lambda head, size: head + 200)),
          ("cut in the last tensor", "", cut(lambda head, size: size - 40)),
          ("cut in the last byte", "", cut(lambda head, size: size - 1))]


# --- values ----------------------------------------------------------------------------------
def first_value(m, raw):
    """Puts bytes in place of the first value's record."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(m.tensors), len(m.values))
    return head + raw + m.bytes()[24:]


cases("key", lambda m, v: first_value(m, struct.pack("<Q", v) + b"abcd"), 2**62, 2**64 - 1, 0, 70000, 2**31)
cases("key type", lambda m, v: m.set("x.y", v, b"\0" * 16), 13, -1, 99, 2**31 - 1)
cases("array", lambda m, v: m.set("x.y", ARRAY, struct.pack("<iQ", *v) + b"\0" * 64),
      (ARRAY, 1), (13, 1), (-1, 1), (U8, 2**61), (U64, 2**61), (U64, 2**62 + 1), (F64, 2**61 + 1),
      (STRING, 2**58), (STRING, 2**64 - 1), (U32, 2**30), (I32, 2**40))
cases("string", lambda m, v: m.set("x.y", STRING, struct.pack("<Q", v) + b"abcd"), 2**40, 2**63, 2**64 - 1)
cases("truth", lambda m, v: m.set("x.y", BOOL, bytes([v])), 2, 255)
CASES.append(("key with a NUL", "", lambda m: m.set("x\0y", U8, b"\1")))
CASES.append(("key twice", "general.name", lambda m: m.values.append(["general.name", STRING, text("b")])))
value_case("general.alignment", U32, "<I", 0, 1, 3, 48, 2**31, 2**21)
cases("general.alignment", lambda m, v: m.set("general.alignment", *v),
      (STRING, text("32")), (U64, struct.pack("<Q", 32)), (F32, struct.pack("<f", 32)))


# --- tensors ---------------------------------------------------------------------------------
def tensor_case(index, *values):
    cases(("name", "dims", "type", "offset")[index],
          lambda m, v: m.tensor("blk.0.attn_q.weight").__setitem__(index, v), *values)


tensor_case(0, b"", b"x" * 64, b"y" * 4000, b"blk.0\0.w", b"blk.1.attn_q.weight", b"other")
tensor_case(1, [0, 256], [256, 0], [-256, 256], [256, -1], [2**32, 2**32], [2**62 + 1, 4], [2**59, 1],
            [1152, 2**42 + 1], [256, 2**55], [32, 256, 2**30, 2**30], [255, 256], [512, 256], [256, 128],
            [256, 256, 2], [256], [128, 512])
tensor_case(2, -1, 4, 5, 9, 15, 16, 24, 31, 99, 2**31 - 1, -2**31, 0, 1, 14)
tensor_case(3, 1, 2**63, 2**64 - 32, 2**40, 0, 32)
cases("n_dims", lambda m, v: m.n_dims.__setitem__(b"blk.0.attn_q.weight", v), 0, 5, 9, 2**32 - 1, 2**31)
for name in ("token_embd", "output_norm", "blk.0.attn_norm", "blk.0.attn_k", "blk.1.ffn_down", "blk.1.ffn_norm"):
    CASES.append((f"no {name}", name, lambda m, n=name: m.tensor(n + ".weight").__setitem__(0, b"gone.weight")))


@case("a tensor more than the model has", "blk.0.attn_q.bias")
def _(m):
    m.tensors.append([b"blk.0.attn_q.bias", [8], 0, len(m.data)])
    m.data += bytes(32)


@case("norm that is not F32", "rope_freqs")
def _(m):
    m.tensors.append([b"rope_freqs.weight", [32], 30, len(m.data)])
    m.data += bytes(64)


@case("frequencies of a wrong length", "rope_freqs")
def _(m):
    m.tensors.append([b"rope_freqs.weight", [8], 0, len(m.data)])
    m.data += bytes(32)


def poison(name, at, raw):
    def change(m):
        start = m.tensor(name)[3] + at
        m.data[start:start + len(raw)] = raw
    return change


NAN, INF = struct.pack("<f", float("nan")), struct.pack("<f", float("-inf"))
CASES += [("infinite scale", "blk.1.ffn_up", poison("blk.1.ffn_up.weight", 34 * 5, b"\0\x7c")),
          ("NaN scale", "output", poison("output.weight", 34 * 77, b"\1\xfe")),
          ("NaN in a norm", "blk.0.ffn_norm", poison("blk.0.ffn_norm.weight", 40, NAN)),
          ("infinity in a norm", "output_norm", poison("output_norm.weight", 1020, INF))]

# --- hyperparameters -------------------------------------------------------------------------
for key in ("general.architecture", "llama.context_length", "llama.embedding_length", "llama.block_count",
            "llama.feed_forward_length", "llama.attention.head_count", "tokenizer.ggml.tokens",
            "llama.attention.layer_norm_rms_epsilon", "tokenizer.ggml.model"):
    CASES.append((f"no {key}", key, lambda m, k=key: m.drop(k)))
cases("general.architecture", lambda m, v: m.set("general.architecture", *v),
      (STRING, text("gpt2")), (STRING, text("")), (STRING, text("llamb")), (U32, b"\1\0\0\0"))
value_case("llama.context_length", U32, "<I", 0, 2**32 - 1)
value_case("llama.embedding_length", U32, "<I", 0, 2**31)
# What contradicts another value may be blamed on either.
value_case("llama.embedding_length", U32, "<I", 255, 512, field="")
value_case("llama.feed_forward_length", U32, "<I", 511, field="")
value_case("llama.attention.key_length", U32, "<I", 32, 63, field="")
value_case("llama.block_count", U32, "<I", 0, 3, 513, 2**32 - 1)
value_case("llama.block_count", I32, "<i", -1)
value_case("llama.feed_forward_length", U32, "<I", 0, 2**31)
value_case("llama.attention.head_count", U32, "<I", 0, 3, 5, 257, 2**32 - 1)
value_case("llama.attention.head_count_kv", U32, "<I", 0, 3, 5, 2**31)
value_case("llama.attention.key_length", U32, "<I", 0, 2**31)
value_case("llama.attention.value_length", U32, "<I", 32)
value_case("llama.rope.dimension_count", U32, "<I", 0, 63, 32, 128)
value_case("llama.rope.freq_base", F32, "<f", 0.0, -1.0, float("nan"), float("inf"))
value_case("llama.attention.layer_norm_rms_epsilon", F32, "<f", -1e-5, float("nan"), float("inf"))
value_case("llama.rope.scaling.factor", F32, "<f", 4.0)
value_case("llama.expert_count", U32, "<I", 8)
cases("llama.rope.scaling.type", lambda m, v: m.set("llama.rope.scaling.type", STRING, text(v)), "yarn", "linear")
cases("llama.block_count", lambda m, v: m.set("llama.block_count", *v), (STRING, text("2")), (F32, NAN), (BOOL, b"\1"))

# --- vocabulary ------------------------------------------------------------------------------
value_case("llama.vocab_size", U32, "<I", 0, 1023, 1025, 2**32 - 1)
for key in ("bos", "eos", "unknown", "padding", "eot"):
    value_case(f"tokenizer.ggml.{key}_token_id", U32, "<I", 1024, 2**31)
cases("", lambda m, v: m.set("tokenizer.ggml.tokens", *v),
      (ARRAY, struct.pack("<iQ", STRING, 2) + text("a") + text("b")))
cases("tokenizer.ggml.tokens", lambda m, v: m.set("tokenizer.ggml.tokens", *v), (ARRAY, struct.pack("<iQ", STRING, 0)),
      (ARRAY, struct.pack("<iQI", U32, 1, 7)), (STRING, text("a")))
cases("tokenizer.ggml.scores", lambda m, v: m.set("tokenizer.ggml.scores", *v),
      (ARRAY, struct.pack("<iQ", F32, 1023) + bytes(4092)), (ARRAY, struct.pack("<iQ", I32, 1024) + bytes(4096)),
      (F32, NAN))
cases("tokenizer.ggml.token_type", lambda m, v: m.set("tokenizer.ggml.token_type", *v),
      (ARRAY, struct.pack("<iQ", I32, 1025) + bytes(4100)), (ARRAY, struct.pack("<iQ", F32, 1024) + bytes(4096)))
cases("tokenizer.ggml.model", lambda m, v: m.set("tokenizer.ggml.model", *v),
      (STRING, text("bert")), (STRING, text("")), (U32, b"\0\0\0\0"))


@case("no token for a byte", "tokenizer.ggml.tokens")
def _(m):
    m.set("tokenizer.ggml.tokens", ARRAY, m.raw("tokenizer.ggml.tokens").replace(b"<0xA7>", b"<0xag>"))


@case("a token twice", "tokenizer.ggml.tokens")
def _(m):
    m.set("tokenizer.ggml.tokens", ARRAY, m.raw("tokenizer.ggml.tokens").replace(b"<0xA7>", b"<0xA8>"))


def run(args, path):
    """Status, stderr and peak memory in KiB."""
    with open("stderr", "w+") as err:
        proc = subprocess.Popen([RUN] + args, stdout=subprocess.DEVNULL, stderr=err, stdin=subprocess.DEVNULL)
        _, status, usage = os.wait4(proc.pid, 0)
        proc.returncode = 0
        err.seek(0)
        return os.waitstatus_to_exitcode(status), err.read(), usage.ru_maxrss


def check(name, field, sanitized, path):
    problems = []
    for args in (["-m", path, "-p", "Hello", "-n", "1", "--greedy", "--quiet"],
                 ["-m", path, "-p", "Hello", "-n", "1", "--greedy", "--quiet", "--load", "read"],
                 ["info", path]):
        status, err, rss = run(args, path)
        if status != 3:
            problems.append(f"status {status}")
        if err.count("\n") != 1 or path not in err or not re.search(r"offset \d+$", err.strip()):
            problems.append("message " + repr(err[:300]))
        if field and field not in err and not field.startswith(("dims", "type", "offset", "n_dims", "name", "key", "array", "string", "truth")):
            problems.append(f"{field} not named: " + repr(err[:300]))
        if rss > RSS_LIMIT_KIB and not sanitized:
            problems.append(f"{rss} KiB")
    if problems:
        print(f"{name}: {'; '.join(problems[:3])}")
    return not problems


def main():
    subprocess.run([RUN, "make-model", "--shape", "tiny", "-o", "good.gguf"], check=True)
    good = open("good.gguf", "rb").read()
    assert Model(good).bytes() == good, "the file can't be taken apart and put together"
    sanitized = b"__asan_init" in open(RUN, "rb").read()
    passed = failed = 0
    for name, field, change in CASES:
        m = Model(good)
        data = change(m)
        with open("bad.gguf", "wb") as f:
            f.write(m.bytes() if data is None else data)
        if check(name, field, sanitized, "bad.gguf"):
            passed += 1
        else:
            failed += 1
    # Too large to be looked through when it is loaded: found when a result is not a number.
    subprocess.run([RUN, "make-model", "--shape", "smollm2-135m", "--layers", "16", "-o", "large.gguf"], check=True)
    m = Model(open("large.gguf", "rb").read())
    poison("blk.7.ffn_up.weight", 34 * 100, b"\0\x7c")(m)
    open("large.gguf", "wb").write(m.bytes())
    for args in (["-m", "large.gguf", "-p", "a", "-n", "1"], ["info", "large.gguf", "--check"],
                 ["serve-load", "-m", "large.gguf", "--sessions", "2", "--concurrency", "2", "-n", "1"]):
        status, err, _ = run(args, "large.gguf")
        good = status == 3 and "blk.7.ffn_up.weight" in err and err.count("\n") == 1
        passed += good
        failed += not good
        if not good:
            print(f"{args}: status {status}, {err!r}")
    status, err, _ = run(["-m", "good.gguf", "-p", "Hello", "-n", "1", "--greedy", "--quiet"], "good.gguf")
    assert status == 0, err
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed != 0


sys.exit(main())
