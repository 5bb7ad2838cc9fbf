#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""serve: metrics and profiles of every ledger of a folder, on the loopback address; a file that it
does not list, a strange host, a slow or broken request and a damaged ledger harm nobody."""
import concurrent.futures
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

from common import TOOL, expect, finish, same

LIB = os.environ["TM_LIB"]
os.makedirs("ledgers", mode=0o700)
env = dict(os.environ, LD_PRELOAD=LIB, TIERMALLOC_DIR=os.path.abspath("ledgers"))
for _ in range(2):
    subprocess.run([sys.executable, "-c", "x = [bytes(3000 + i) for i in range(20000)]"], env=env, check=True)
names = [n[:-3] for n in os.listdir("ledgers") if n.endswith(".tm")]
expect(len(names) >= 2, f"ledgers: {names}")
with open("ledgers/999-1.tm", "wb") as f:
    f.write(b"no ledger" * 1000)
with open("ledgers/secret.tm", "w", encoding="utf-8") as f:
    f.write("secret")
os.symlink("/etc/passwd", "ledgers/1000-1.tm")

server = subprocess.Popen([TOOL, "serve", "--listen", "127.0.0.1:0", "--dir", "ledgers"], stdout=subprocess.PIPE, text=True,
                          stderr=open("err", "w", encoding="utf-8"))
url = re.search(r"http://\S+/", server.stdout.readline()).group(0)
port = int(url.rstrip("/").rsplit(":", 1)[1])
expect(url.startswith("http://127.0.0.1:"), url)


def get(path, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(url + path, headers=headers)) as r:
            return r.status, r.headers["Content-Type"], r.read()
    except urllib.error.HTTPError as e:
        return e.code, e.headers["Content-Type"], e.read()


def raw(text):
    with socket.create_connection(("127.0.0.1", port)) as s:
        s.sendall(text)
        s.shutdown(socket.SHUT_WR)
        answer = b""
        while part := s.recv(65536):
            answer += part
    return answer


try:
    status, kind, body = get("")
    expect(status == 200 and kind.startswith("text/html") and all(n.encode() in body for n in names), f"list: {status} {body}")
    expect(b"secret" not in body and b"1000-1" not in body, "the list shows what is no ledger")
    status, kind, body = get("metrics")
    text = body.decode()
    expect(status == 200 and "version=0.0.4" in kind, f"metrics: {status} {kind}")
    for n in names:
        expect(re.search(rf'^tiermalloc_tier_live_bytes\{{program="[^"]+",pid="{n.split("-")[0]}"', text, flags=re.M), f"no metrics of {n}")
    families = re.findall(r"^# TYPE (\S+)", text, flags=re.M)
    same(len(families), len(set(families)), "families stand once")
    for form, begin in (("json", b"{"), ("pprof", b"\x1f\x8b"), ("html", b"<!doctype html>"), ("prometheus", b"# HELP")):
        status, kind, body = get(f"{names[0]}.{form}")
        expect(status == 200 and body.startswith(begin), f"{form}: {status} {body[:60]}")
    same(json.loads(get(f"{names[0]}.json")[2])["process"]["pid"], int(names[0].split("-")[0]), "process")
    status, _, body = get(f"debug/pprof/heap?pid={names[1].split('-')[0]}")
    expect(status == 200 and body.startswith(b"\x1f\x8b"), f"profile: {status}")
    for path in ("nothing", "secret.json", "..%2f..%2fetc%2fpasswd.json", f"ledgers/{names[0]}.json", "1000-1.json", f"{names[0]}.tm",
                 f"{names[0]}.exe", "debug/pprof/heap?pid=1", "debug/pprof/heap"):
        same(get(path)[0], 404, path)
    same(get("999-1.json")[0], 500, "a damaged ledger")
    same(get("metrics", Host="evil.example")[0], 403, "a strange host")
    same(get("metrics", Host=f"localhost:{port}")[0], 200, "localhost")
    for text, want in ((b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"200"), (b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"405"),
                       (b"GET /%00 HTTP/1.1\r\n\r\n", b"400"), (b"GET /%zz HTTP/1.1\r\n\r\n", b"400"), (b"nonsense\r\n\r\n", b"405"),
                       (b"GET / HTTP/1.1\r\n" + b"x" * 20000, b"414"), (b"GET /\0 HTTP/1.1\r\n\r\n", b"400"), (b"GET http", b"400")):
        answer = raw(text)
        expect(answer.startswith(b"HTTP/1.1 " + want), f"{text[:30]!r}: {answer[:60]!r}")
    head = raw(b"HEAD /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    expect(head.startswith(b"HTTP/1.1 200") and head.endswith(b"\r\n\r\n") and b"Content-Length: " in head, f"HEAD: {head!r}")
    # Readers that say nothing do not keep others waiting.
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(4)]
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        same([r[0] for r in pool.map(get, ["metrics"] * 16)], [200] * 16, "at once")
    expect(time.monotonic() - start < 60, "silent readers keep others waiting")
    for s in silent:
        s.close()
finally:
    server.send_signal(signal.SIGTERM)
    same(server.wait(), 0, "status at the end")
for bad in (["--listen", "nowhere"], ["--listen", "127.0.0.1:99999"], ["--listen"], ["more"]):
    run = subprocess.run([TOOL, "serve", *bad], capture_output=True, text=True)
    expect(run.returncode == 2 and len(run.stderr.splitlines()) == 1, f"{bad}: {run.returncode} {run.stderr}")
finish()
