#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""frameworks.py torch CONF | cupy | numba | jax | share

H11 and H12: a framework's own work under whatever preload the caller set. Prints one line of JSON with
what must not depend on the library (token ids, sums) and what may (times, peaks); the caller compares
the modes. A framework that isn't installed is a fact, not a failure."""
import json
import os
import sys
import time

MODE = os.environ.get("TM_GPU_MODE", "bare")


def line(step, case, ok, **more):
    print(json.dumps({"step": step, "case": case, "ok": ok, "mode": MODE, **more}), flush=True)


def absent(step, what, error):
    line(step, what, None, absent=str(error).split("\n", maxsplit=1)[0][:100])
    sys.exit(0)


def model(torch):
    """A small decoder with random weights: 12 layers, grouped as Llama's are."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm = nn.LayerNorm(width)
            self.attention = nn.MultiheadAttention(width, 16, batch_first=True)
            self.mlp = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(),
                                     nn.Linear(4 * width, width))

        def forward(self, x):
            h = self.norm(x)
            x = x + self.attention(h, h, h, need_weights=False)[0]
            return x + self.mlp(x)

    width, words = 2048, 32000
    torch.manual_seed(1)
    return nn.Sequential(nn.Embedding(words, width), *[Block(width) for _ in range(12)], nn.LayerNorm(width),
                         nn.Linear(width, words)).to(device="cuda", dtype=torch.bfloat16).eval()


def run_torch(conf):
    if conf == "uncached":
        os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"
    elif conf != "default":
        os.environ["PYTORCH_ALLOC_CONF"] = os.environ["PYTORCH_CUDA_ALLOC_CONF"] = conf
    try:
        import torch
    except ImportError as e:
        absent("H11", "torch " + conf, e)
    if not torch.cuda.is_available():
        absent("H11", "torch " + conf, "no device")
    net = model(torch)
    free_before, total = torch.cuda.mem_get_info()
    ids = torch.arange(8 * 16, device="cuda").reshape(8, 16) % 32000
    steps = []
    with torch.no_grad():
        for _ in range(48):
            start = time.perf_counter()
            ids = torch.cat([ids, net(ids)[:, -1].argmax(-1, keepdim=True)], 1)
            torch.cuda.synchronize()
            steps.append(time.perf_counter() - start)
        graphed = None
        if conf != "uncached":
            held = torch.zeros(8, 16, dtype=torch.long, device="cuda")
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                net(held)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                result = net(held)
            held.copy_(ids[:, :16])
            graph.replay()
            torch.cuda.synchronize()
            graphed = int(result[:, -1].argmax(-1).sum())
    steps.sort()
    line("H11", "torch " + conf, True, ids=int(ids.sum()), last=ids[:, -4:].flatten().tolist()[:8], graphed=graphed,
         step_ms=round(1000 * steps[len(steps) // 2], 3), peak_reserved=torch.cuda.max_memory_reserved(),
         free_delta=free_before - torch.cuda.mem_get_info()[0], total=total)


def run_cupy():
    try:
        import cupy
        total = 0.0
        for n in (100, 1000, 3000):
            a = cupy.arange(n * n, dtype=cupy.float32).reshape(n, n) % 7
            total += float((a @ a.T).sum())
        cupy.get_default_memory_pool().free_all_blocks()
    except Exception as e:  # whatever a library throws where there is no device
        absent("H12", "cupy", e)
    line("H12", "cupy", True, total=total)


def run_numba():
    try:
        import numpy
        from numba import cuda

        @cuda.jit
        def double(a):
            i = cuda.grid(1)
            if i < a.size:
                a[i] *= 2

        data = numpy.arange(100000, dtype=numpy.float32)
        device = cuda.to_device(data)
        double[400, 256](device)
        total = float(device.copy_to_host().sum())
    except Exception as e:
        absent("H12", "numba", e)
    line("H12", "numba", total == 2 * float(data.sum()), total=total)


def run_jax():
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    try:
        import jax
        import jax.numpy as np
        if jax.default_backend() != "gpu":
            absent("H12", "jax", "no device")
        total = float(jax.jit(lambda x: (x @ x.T).sum())(np.ones((2000, 2000))))
    except Exception as e:
        absent("H12", "jax", e)
    line("H12", "jax", total == 2000.0 ** 3, total=total)


def take(queue, back):
    tensor = queue.get()
    back.put(float(tensor.sum()))
    del tensor


def run_share():
    try:
        import torch
        if not torch.cuda.is_available():
            absent("H12", "share", "no device")
    except ImportError as e:
        absent("H12", "share", e)
    context = torch.multiprocessing.get_context("spawn")
    queue, back = context.Queue(), context.Queue()
    child = context.Process(target=take, args=(queue, back))
    child.start()
    tensor = torch.arange(100000, device="cuda", dtype=torch.float32)
    queue.put(tensor)
    there = back.get(timeout=15)
    child.join(10)
    line("H12", "share", there == float(tensor.sum()), there=there)


def main():
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if what == "torch":
        run_torch(sys.argv[2])
    elif what in ("cupy", "numba", "jax", "share"):
        {"cupy": run_cupy, "numba": run_numba, "jax": run_jax, "share": run_share}[what]()
    else:
        sys.exit(2)


if __name__ == "__main__":
    main()
