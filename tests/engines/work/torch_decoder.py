# SPDX-License-Identifier: MIT
"""PyTorch: a decoder with seeded weights whose cache grows by torch.cat, fp32.

usage: torch_decoder.py SESSIONS TOKENS     the sessions take turns; each has a cache of its own
"""
import sys

import torch
from torch.nn import functional

import common

VOCABULARY, WIDTH, LAYERS, HEADS = 16000, 1024, 6, 16


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_in, self.norm_mid = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.to_qkv, self.out = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, past):
        shape = (x.shape[0], HEADS, WIDTH // HEADS)
        q, k, v = (t.view(shape).transpose(0, 1) for t in self.to_qkv(self.norm_in(x)).chunk(3, -1))
        if past is not None:
            k, v = torch.cat((past[0], k), 1), torch.cat((past[1], v), 1)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        x = x + self.out(seen.transpose(0, 1).reshape(x.shape))
        return x + self.narrow(functional.gelu(self.wide(self.norm_mid(x)))), (k, v)


class Decoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm, self.head = torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens, past):
        x, kept = self.table(tokens), []
        for layer, before in zip(self.layers, past or [None] * LAYERS):
            x, pair = layer(x, before)
            kept.append(pair)
        return self.head(self.norm(x[-1])), kept


def main(sessions, tokens):
    torch.manual_seed(7)
    torch.set_num_threads(common.THREADS)
    random, result = common.Random(11), common.Result()
    decoder = Decoder().eval()
    states = [(torch.tensor([random.below(VOCABULARY) for _ in range(16 + random.below(100))]), None)
              for _ in range(sessions)]
    result.begin()
    with torch.inference_mode():
        for _ in range(tokens):
            for i, (last, past) in enumerate(states):
                logits, kept = decoder(last, past)
                states[i] = (logits.argmax().view(1), kept)
                result.add(int(states[i][0]))
    result.end(sessions * tokens)
    result.show()


main(int(sys.argv[1]), int(sys.argv[2]))
