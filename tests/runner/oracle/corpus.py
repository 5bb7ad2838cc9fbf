# SPDX-License-Identifier: MIT
"""Texts for the comparison of tokenizers, separated by NUL: corpus.py FOLDER-OF-SOURCES OUT"""
import glob
import random
import re
import sys

source, out = sys.argv[1:]
r = random.Random(5)
texts = [
    b"", b" ", b"  ", b"\n", b" \n ", b"Hello world", b" Hello", b"\xf0\x9f\x98\x80", b"a<s>b",
    b"<|im_start|>user\nhi there<|im_end|>\n<|im_start|>assistant\n", b"<s></s><unk>  x",
    b"<|endoftext|><|endoftext|> a", b"'s 't I'm they're we've I'll he'd 'S I'M THEY'RE",
    b"\t\tint x = 10;\r\n\r\n  return;\n\n\n", b"12345 1 23 456 7890 3.14159e-10", b"...!!!???",
    b"a  b   c    d     ", b"\xff\xfe\x80abc\xc3", b"\xe4\xb8\xad\xe6\x96", b"\xed\xa0\x80x",
    b"\xc0\xafx",
]
words = ("Ελληνικά Русский язык 中文字符 日本語テキスト 한국어 العربية עברית हिन्दी ไทย Việt Nam Türkçe ñandú "
         "ß ŒÆ ½ ² ① Ⅷ ٣٤٥ १२३ 𝟙𝟚 e\u0301 \u00a0\u2003\u3000 👩‍👩‍👧‍👦 🇩🇪 ﷽ … “quotes” — ™ "
         "\u200b \ufeff \u0085 ſ K ｆｕｌｌ").split(" ")
marks = ["'s", "'ll", " ", "  ", "\n", "\t", "0", "12", "a", "Word", "x_y", "()", "{}", "\r\n",
         "<|im_end|>", "<s>", "</s>", "<unk>", "<0x0A>", "▁", "▁▁", "Ġ"]
code = b"".join(open(name, "rb").read() for name in sorted(glob.glob(source + "/*.[ch]")))
for _ in range(120):
    at = r.randrange(len(code) - 2000)
    texts.append(code[at:at + r.randrange(1, 1500)])
for _ in range(150):
    texts.append("".join(r.choice(words + marks) + r.choice(["", " ", ""])
                         for _ in range(r.randrange(1, 30))).encode())
ranges = [(1, 0x80), (0x80, 0x800), (0x800, 0xd800), (0x10000, 0x20000), (0x20000, 0x32000)]
for _ in range(80):
    texts.append("".join(chr(r.randrange(*r.choice(ranges)))
                         for _ in range(r.randrange(1, 60))).encode())
for _ in range(60):
    texts.append(bytes(r.randrange(1, 256) for _ in range(r.randrange(1, 80))))
# Beyond U+10FFFF llama.cpp throws.
texts = [re.sub(rb"[\xf4-\xf7]", b"z", text).replace(b"\0", b" ") for text in texts]
with open(out, "wb") as file:
    file.write(b"\0".join(texts))
print(len(texts))
