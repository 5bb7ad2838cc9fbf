#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# needs: cc objcopy strip
"""A stripped program's functions are told by a debug file that a debuginfod server has, where one is
configured, inlined frames as such; without one they are module+0xOFFSET, and no name is guessed."""
import ctypes.util
import glob
import http.server
import os
import re
import subprocess
import sys
import threading

TOOL = os.path.join(os.environ["TM_BUILD"], "tiermalloc")
PROGRAM = """
#include <stdlib.h>
#include <string.h>
static void *volatile kept[64];
static inline __attribute__((always_inline)) void *grab(unsigned long bytes)
{
	void *p = malloc(bytes);
	return p ? memset(p, 1, bytes) : p;
}
__attribute__((noinline)) static void fill_shelf(int i)
{
	kept[i] = grab(7777);
}
int main(void)
{
	for (int i = 0; i < 64; i++)
		fill_shelf(i);
	return kept[0] == NULL;
}
"""
problems, asked = [], []
if "this command was built without elfutils" in subprocess.run([TOOL, "doctor"], capture_output=True, text=True,
                                                               check=False).stdout:
    print("built without elfutils")
    sys.exit(77)
if ctypes.util.find_library("debuginfod") is None:
    print("libdebuginfod is not installed")
    sys.exit(77)


class Server(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        asked.append(self.path)
        if self.path != f"/buildid/{build_id}/debuginfo":
            self.send_error(404)
            return
        data = open("shelf.debug", "rb").read()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


def report(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("DEBUGINFOD", "http_proxy", "HTTP_PROXY", "ALL_PROXY"))}
    env |= {"HOME": os.getcwd(), "DEBUGINFOD_CACHE_PATH": os.path.abspath("cache"), "no_proxy": "*"} | more
    done = subprocess.run([TOOL, "report", ledger], capture_output=True, text=True, env=env, check=False)
    if done.returncode:
        sys.exit(f"status {done.returncode}: {done.stderr}")
    site = re.search(r"(s:[0-9a-f]+) +(.*)", next(l for l in done.stdout.splitlines() if re.match(r" +497728 +64 ", l)))
    whole = subprocess.run([TOOL, "report", "--site", site.group(1), ledger], capture_output=True, text=True, env=env, check=True)
    return site.group(2), whole.stdout


with open("shelf.c", "w", encoding="utf-8") as f:
    f.write(PROGRAM)
subprocess.run(["cc", "-g", "-O2", "-Wl,--build-id=sha1", "-o", "shelf", "shelf.c"], check=True)
subprocess.run(["objcopy", "--only-keep-debug", "shelf", "shelf.debug"], check=True)
subprocess.run(["strip", "shelf"], check=True)
notes = subprocess.run(["readelf", "-n", "shelf"], capture_output=True, text=True, check=True).stdout
build_id = re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)
subprocess.run(["./shelf"], env=dict(os.environ, LD_PRELOAD=os.environ["TM_LIB"], TIERMALLOC_DIR=os.path.abspath("l")), check=True)
ledger, = glob.glob("l/*.tm")
os.rename("shelf.debug", "elsewhere.debug")
where, _ = report()
if not re.fullmatch(r"shelf\+0x[0-9a-f]+", where):
    problems.append(f"without a debug file: {where}")
os.rename("elsewhere.debug", "shelf.debug")
os.mkdir("away")
os.rename("shelf.debug", "away/shelf.debug")
os.chdir("away")
ledger = "../" + ledger
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
where, whole = report(DEBUGINFOD_URLS=f"http://127.0.0.1:{server.server_address[1]}")
if not re.fullmatch(r"grab  shelf.c:\d+", where):
    problems.append(f"by the server: {where}, it was asked for {asked}")
if not re.search(r"grab  shelf.c:\d+  \(inlined\)\n +\d+  fill_shelf  shelf.c:\d+\n", whole):
    problems.append(f"inlined frames are not marked:\n{whole}")
print("\n".join(problems))
sys.exit(bool(problems))
