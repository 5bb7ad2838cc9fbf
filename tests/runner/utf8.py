#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Whatever tokens a model draws, the text that is streamed is well-formed UTF-8, and it is what
replacing bad bytes at the end would have given."""
import glob
import os
import random
import subprocess

import claims
from claims import check

RUN = os.path.join(os.environ["TM_BUILD"], "yi-coder-run")
SRC = os.environ["TM_SRC"]


# Hot draws from a model with random weights: bytes that fit nowhere.
for shape in "tiny", "smollm2-135m":
    subprocess.run([RUN, "make-model", "--shape", shape, "--layers", "1", "--embd", "64", "--heads", "2",
                    "--kv-heads", "2", "--ff", "64", "--type", "F32", "-o", "model.gguf"], check=True)
    replaced = 0
    for seed in range(20):
        out = subprocess.run([RUN, "-m", "model.gguf", "-p", "a", "-n", "150", "--temp", "5", "--top-k",
                              "0", "--top-p", "1", "--min-p", "0", "--seed", str(seed), "--quiet"],
                             capture_output=True).stdout
        try:
            replaced += out.decode().count("\ufffd")
            check("well-formed", True)
        except UnicodeDecodeError as error:
            check(f"{shape}, seed {seed}", False, error)
    check(f"{shape}: there was something to replace", shape != "tiny" or replaced > 20, replaced)

with open("detok.c", "w") as f:
    f.write("""
#include <stdio.h>
#include <stdlib.h>
#include "tools/runner/tokenizer.h"
int main(void)
{
	struct yi_detok detok = { { 0 }, 0 };
	char in[7], out[YI_DETOK_ROOM(sizeof(in))];
	size_t n;
	while ((n = fread(in, 1, 1 + (size_t)rand() % sizeof(in), stdin)) > 0)
		fwrite(out, 1, yi_detok_add(&detok, in, n, out), stdout);
	fwrite(out, 1, yi_detok_end(&detok, out), stdout);
	return 0;
}
""")
R = SRC + "/tools/runner/"
subprocess.run([os.environ.get("CC", "cc"), "-std=gnu11", "-D_GNU_SOURCE", "-I" + SRC, "detok.c",
                *[R + name for name in ("detok.c", "tokenizer.c", "merge.c", "pretok.c", "vocab.c",
                                        "vocab_special.c", "unicode.c", "mem.c", "error.c")],
                *glob.glob(R + "gguf*.c"), *glob.glob(R + "quant*.c"), "-lm", "-o", "detok"], check=True)
r = random.Random(1)
good = "aé€😀\u07ff\u0800\uffff\U00010000\U0010ffff".encode()
for _ in range(300):
    data = bytearray(good * 3)
    for _ in range(r.randrange(12)):
        at = r.randrange(len(data))
        data[at:at + r.randrange(2)] = bytes(r.randrange(256) for _ in range(r.randrange(3)))
    out = subprocess.run(["./detok"], input=bytes(data), capture_output=True).stdout
    check("as one replacement at the end", out == bytes(data).decode("utf-8", "replace").encode(),
          bytes(data))
claims.end()
