# SPDX-License-Identifier: MIT
"""CTranslate2: a decoder with seeded weights, built by the spec API, int8; sampled greedily.

usage: ct2.py build DIR | ct2.py run DIR TOKENS
"""
import os
import sys

import ctranslate2
import numpy

import common

VOCABULARY, WIDTH, LAYERS, HEADS = 8000, 512, 8, 8


def build(folder):
    specs = ctranslate2.specs
    spec = specs.TransformerDecoderModelSpec.from_config(
        LAYERS, HEADS, activation=specs.Activation.GELU)
    random = numpy.random.RandomState(3)

    def weights(*shape):
        return (random.standard_normal(shape) * 0.05).astype("float32")

    def linear(layer, out, into):
        layer.weight, layer.bias = weights(out, into), weights(out)

    def norm(layer):
        layer.gamma, layer.beta = numpy.ones(WIDTH, "float32"), numpy.zeros(WIDTH, "float32")

    decoder = spec.decoder
    decoder.embeddings.weight = weights(VOCABULARY, WIDTH)
    decoder.position_encodings.encodings = weights(1024, WIDTH)
    decoder.scale_embeddings = False
    norm(decoder.layer_norm)
    decoder.projection.weight = weights(VOCABULARY, WIDTH)
    for layer in decoder.layer:
        linear(layer.self_attention.linear[0], 3 * WIDTH, WIDTH)
        linear(layer.self_attention.linear[1], WIDTH, WIDTH)
        norm(layer.self_attention.layer_norm)
        linear(layer.ffn.linear_0, 4 * WIDTH, WIDTH)
        linear(layer.ffn.linear_1, WIDTH, 4 * WIDTH)
        norm(layer.ffn.layer_norm)
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = "<u>", "<s>", "</s>"
    spec.register_vocabulary(["<u>", "<s>", "</s>"] + ["w%d" % i for i in range(VOCABULARY - 3)])
    spec.validate()
    spec.optimize(quantization="int8")
    os.makedirs(folder, exist_ok=True)
    spec.save(folder)


def run(folder, tokens):
    generator = ctranslate2.Generator(folder, device="cpu", inter_threads=2, intra_threads=1,
                                      compute_type="int8")
    random = common.Random(11)
    result = common.Result()
    for _ in range(4):
        prompts = [["<s>"] + ["w%d" % random.below(VOCABULARY - 3) for _ in range(5 + random.below(60))]
                   for _ in range(4)]
        result.begin()
        answers = generator.generate_batch(prompts, max_length=tokens, min_length=tokens, sampling_topk=1,
                                           beam_size=2, max_batch_size=2)
        result.end(tokens * len(prompts))
        for answer in answers:
            result.add(" ".join(answer.sequences[0]))
    result.show()


if sys.argv[1] == "build":
    build(sys.argv[2])
else:
    run(sys.argv[2], int(sys.argv[3]))
