# SPDX-License-Identifier: MIT
"""llama.cpp's HTTP server (xllamacpp): CLIENTS clients of REQUESTS requests each, then IDLE seconds.

usage: server.py CLIENTS REQUESTS IDLE. The clients are a process of their own, without a preload.
"""
import json
import os
import subprocess
import sys
import time

CLIENT = """
import concurrent.futures, json, sys, urllib.request
url, clients, requests = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
def ask(number):
    body = {"prompt": "Item %d of the list is" % number, "max_tokens": 8, "temperature": 0, "seed": 1,
            "cache_prompt": False}
    call = urllib.request.Request(url + "/v1/completions", json.dumps(body).encode(),
                                  {"Content-Type": "application/json"})
    with urllib.request.urlopen(call, timeout=300) as answer:
        return json.load(answer)["choices"][0]["text"]
with concurrent.futures.ThreadPoolExecutor(clients) as pool:
    json.dump(list(pool.map(ask, range(clients * requests))), sys.stdout)
"""


def resident_mib():
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def main():
    import xllamacpp

    import common

    clients, requests, idle = (int(a) for a in sys.argv[1:4])
    result = common.Result()
    params = xllamacpp.CommonParams()
    params.model.path = common.gguf()
    params.n_ctx = 2048
    params.n_parallel = clients
    params.cpuparams.n_threads = common.THREADS
    params.cpuparams_batch.n_threads = common.THREADS
    server = xllamacpp.Server(params)
    env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    result.begin()
    answers = subprocess.run([sys.executable, "-c", CLIENT, server.listening_address, str(clients),
                              str(requests)], env=env, check=True, capture_output=True).stdout
    result.end(clients * requests * 8)
    loaded = resident_mib()
    time.sleep(idle)
    result.extra["rss_loaded_mib"], result.extra["rss_idle_mib"] = loaded, resident_mib()
    # Slots share batches, whose make-up depends on time and may turn a near tie; what must be equal
    # is the number of answers. Texts are compared where one client asks.
    texts = json.loads(answers)
    result.add(len(texts) if clients > 1 else "|".join(texts))
    result.show()
    sys.stdout.flush()
    os._exit(0)


main()
