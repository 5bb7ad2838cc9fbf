# SPDX-License-Identifier: MIT
"""grind: instructions of the library alone, by callgrind, for the tests that count them."""
import os
import re
import subprocess
import sys


def of_the_library(path):
    """Own cost of what lies in the library, from callgrind's file."""
    total, names, ours, skip = 0, {}, False, False
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            found = re.match(r"ob=\((\d+)\)(?: (.*))?$", line)
            if found:
                names.setdefault(found[1], found[2])
                ours = "libtiermalloc" in (names[found[1]] or "")
            elif line.startswith("cob="):
                found = re.match(r"cob=\((\d+)\)(?: (.*))?$", line)
                names.setdefault(found[1], found[2])
            elif line.startswith("calls="):
                skip = True
            elif re.match(r"[+\-*\d]", line):
                total += int(line.split()[1]) if ours and not skip else 0
                skip = False
    return total


def only_in_a_judged_build():
    """Ends the test, skipped, where the library was built for something else than speed."""
    texts = {}
    for name in ("config.h", "Makefile"):
        with open(os.path.join(os.environ["TM_BUILD"], name), encoding="utf-8") as f:
            texts[name] = f.read()
    for reason, is_so in (("without the CUDA hooks", "#define TM_HAVE_CUDA 0" in texts["config.h"]),
                          ("for debugging", "#define TM_DEBUG 1" in texts["config.h"]),
                          ("without -O2", not re.search(r"^CFLAGS = .*-O[23]", texts["Makefile"], re.M))):
        if is_so:
            print("skipped: built " + reason)
            sys.exit(77)


def run(words, **more):
    """The library's own instructions in this command, of the functions in `collect` if there is one."""
    collect = more.pop("collect", None)
    env = dict(os.environ, LD_PRELOAD=os.environ["TM_LIB"], **more)
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=out",
                           "--soname-synonyms=somalloc=nouserintercepts"] +
                          (["--toggle-collect=" + collect] if collect else []) + words,
                          env=env, capture_output=True, text=True, check=False)
    if "debuginfo reader" in done.stderr:
        print("skipped: this valgrind can't read what this compiler says of the code")
        sys.exit(77)
    if done.returncode != 0:
        sys.exit("callgrind failed: " + done.stdout + done.stderr)
    return of_the_library("out")
