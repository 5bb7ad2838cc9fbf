# SPDX-License-Identifier: MIT
"""Small files that hold a vocabulary and no tensor, to start from: spm.gguf and bpe.gguf."""
import struct


def text(s):
    s = s.encode() if isinstance(s, str) else s
    return struct.pack("<Q", len(s)) + s


def array(kind, code, values):
    body = b"".join(values) if code is None else struct.pack(f"<{len(values)}{code}", *values)
    return struct.pack("<iiQ", 9, kind, len(values)) + body


def write(path, items):
    body = b"".join(text(key) + value for key, value in items)
    data = b"GGUF" + struct.pack("<Iqq", 3, 0, len(items)) + body
    with open(path, "wb") as f:
        f.write(data + b"\0" * (-len(data) % 32))


def number(n):
    return struct.pack("<iI", 4, n)


def flag(b):
    return struct.pack("<iB", 7, b)


def word(s):
    return struct.pack("<i", 8) + text(s)


special = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "[user]"]
types = [2, 3, 3, 3, 3, 3, 4]
common = [("general.architecture", word("llama")), ("tokenizer.ggml.bos_token_id", number(1)),
          ("tokenizer.ggml.eos_token_id", number(2)), ("tokenizer.ggml.add_bos_token", flag(1)),
          ("tokenizer.chat_template", word("{{'<|im_start|>'}}"))]

tokens = special + [f"<0x{i:02X}>" for i in range(256)]
tokens += list("▁Helowrd's123") + ["el", "lo", "▁w", "or", "ld", "▁▁", "ello", "▁wor"]
write("spm.gguf", common + [
    ("tokenizer.ggml.model", word("llama")),
    ("tokenizer.ggml.tokens", array(8, None, [text(t) for t in tokens])),
    ("tokenizer.ggml.scores", array(6, "f", [-float(i) for i in range(len(tokens))])),
    ("tokenizer.ggml.token_type",
     array(5, "i", types + [6] * 256 + [1] * (len(tokens) - 256 - len(special)))),
    ("tokenizer.ggml.add_space_prefix", flag(1))])

spelled = [chr(b) if 0x21 <= b <= 0x7e or 0xa1 <= b <= 0xac or b >= 0xae else None for b in range(256)]
others = iter(range(256, 512))
spelled = [s or chr(next(others)) for s in spelled]
merges = ["H e", "l l", "He ll", "Ġ w", "o r", "Ġw or", "l d", "Ġ Ġ", "' s"]
tokens = special + spelled + [m.replace(" ", "") for m in merges]
for pre in "smollm", "llama-bpe":
    write(f"bpe-{pre}.gguf", common + [
        ("tokenizer.ggml.model", word("gpt2")), ("tokenizer.ggml.pre", word(pre)),
        ("tokenizer.ggml.tokens", array(8, None, [text(t) for t in tokens])),
        ("tokenizer.ggml.token_type", array(5, "i", types + [1] * (len(tokens) - len(special)))),
        ("tokenizer.ggml.merges", array(8, None, [text(m) for m in merges]))])
