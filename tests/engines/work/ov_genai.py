# SPDX-License-Identifier: MIT
"""OpenVINO GenAI reading the GGUF file: greedy text. TOKENS as argument."""
import sys

import openvino_genai

import common

tokens = int(sys.argv[1]) if len(sys.argv) > 1 else 24
pipe = openvino_genai.LLMPipeline(common.gguf(), "CPU", INFERENCE_NUM_THREADS=common.THREADS)
result = common.Result()
result.begin()
text = str(pipe.generate("The capital of France is", max_new_tokens=tokens, do_sample=False,
                         ignore_eos=True))
result.end(tokens)
result.add(text)
result.extra["text"] = text
result.show()
