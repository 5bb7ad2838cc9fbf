#!/bin/sh
# SPDX-License-Identifier: MIT
# timeout: 3600
# Tokenizer metadata of model files, changed at random: 10 s, in soak 15 minutes.
R=$TM_SRC/tools/runner
. "$TM_SRC/tests/fuzz/runner/build.sh"
fuzz_build vocab
python3 "$TM_SRC/tests/fuzz/runner/seeds.py" || exit 1
./vocab "$FUZZ_S" spm.gguf bpe-smollm.gguf bpe-llama-bpe.gguf
