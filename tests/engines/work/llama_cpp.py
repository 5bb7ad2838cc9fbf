# SPDX-License-Identifier: MIT
"""llama.cpp in the process (xllamacpp): greedy completions of the small model. TOKENS as argument."""
import json
import sys

import xllamacpp

import common

PROMPTS = ["The capital of France is", "To sort a list of numbers in C, first",
           "Once upon a time there was a machine that"]
tokens = int(sys.argv[1]) if len(sys.argv) > 1 else 48
result = common.Result()
params = xllamacpp.CommonParams()
params.model.path = common.gguf()
params.n_ctx = 512
params.cpuparams.n_threads = common.THREADS
params.cpuparams_batch.n_threads = common.THREADS
server = xllamacpp.Server(params)
for prompt in PROMPTS:
    result.begin()
    answer = server.handle_completions({"prompt": prompt, "max_tokens": tokens // len(PROMPTS),
                                        "temperature": 0, "seed": 1, "cache_prompt": False})
    answer = answer if isinstance(answer, dict) else json.loads(answer)
    result.end(answer["usage"]["completion_tokens"])
    result.add(answer["choices"][0]["text"])
    result.extra["text"] = answer["choices"][0]["text"]
result.show()
