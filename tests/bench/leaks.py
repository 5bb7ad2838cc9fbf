#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The planted-leak program in one run under each tool that tells leaks: what it says of the two leaks and
what it costs. leaks.py -n REPEATS NAME=PATH ...: the last is the library, the others are not used.

Question: does an account that is always on say the same bytes as tools that record every event, at a
tenth of their processor time? Refuted by other bytes than heaptrack's, or a ratio of more than 1.4.

Each run is of its own; processor time is that of all processes of the tool, the least of the repeats,
divided by the program's alone. memray sees programs only inside Python, so there the program is a shared
library that Python calls, under it and without it. It is taken from MEMRAY or the path.
"""
import glob
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

from common import HERE, table

ARGUMENTS = ["1", "500", "120"]
FUNCTIONS = ("leak_meta", "grow_cache", "load_weights", "tokenise", "decode_step", "run_session")
INSIDE = ("import ctypes; a = (ctypes.c_char_p * 5)(b'infer', %s); ctypes.CDLL('./libinfer.so').main(4, a)"
          % ", ".join("b'%s'" % a for a in ARGUMENTS))


def innermost(names):
    """Of a stack's functions, innermost first: the program's own."""
    for name in names:
        word = re.match(r"(?:.* )?(\w+)(?:\(|<|$)", name or "")
        if word and word.group(1) in FUNCTIONS:
            return word.group(1)
    return None


def run(command, **env):
    """Seconds of processor and what it wrote on standard error."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env=dict(os.environ, **env), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def summed(stacks):
    sums = {}
    for names, size in stacks:
        name = innermost(names)
        if name:
            sums[name] = sums.get(name, 0) + size
    return sums


def fresh(pattern):
    for name in glob.glob(pattern):
        shutil.rmtree(name) if os.path.isdir(name) else os.unlink(name)


# --- the tools: processor time, that of a report of its own, live or leaked bytes by function ----------


def alone(_):
    return run(["./infer"] + ARGUMENTS)[0], None, {}


def tiermalloc(library):
    fresh("ledgers")
    cpu, _ = run(["./infer"] + ARGUMENTS, LD_PRELOAD=library, TIERMALLOC_DIR=os.getcwd() + "/ledgers")
    tool = os.path.join(os.path.dirname(os.path.dirname(library)), "bin/tiermalloc")
    if not os.path.exists(tool):
        tool = os.path.join(os.path.dirname(library), "tiermalloc")
    asked, text = run([tool, "report", "--json", glob.glob("ledgers/*.tm")[0]])
    document = json.loads(text)
    stacks = [([document["frames"][f]["fn"] for f in document["stacks"][s["stack"]]["frames"]], s["live_bytes"])
              for s in document["sites"] if s["stack"] is not None]
    return cpu, asked, summed(stacks)


def heaptrack(_):
    fresh("trace.*")
    cpu, _ = run(["heaptrack", "-o", "trace", "./infer"] + ARGUMENTS)
    asked, _ = run(["heaptrack_print", "-f", glob.glob("trace.*")[0], "--flamegraph-cost-type", "leaked", "-F", "leaked"])
    lines = (line.rstrip().rsplit(" ", 1) for line in open("leaked", encoding="utf-8"))
    return cpu, asked, summed((reversed(stack.split(";")), int(size)) for stack, size in lines)


def sanitizer(slow):
    def tool(library):
        options = "fast_unwind_on_malloc=0" if slow else ""
        cpu, text = run(["./infer"] + ARGUMENTS, LD_PRELOAD=library, LSAN_OPTIONS=options)
        stacks = []
        for found in re.finditer(r"(?:Direct|Indirect) leak of (\d+) byte.*\n((?: +#.*\n)*)", text):
            stacks.append((re.findall(r"#\d+ \S+ in (.*)", found.group(2)), int(found.group(1))))
        return cpu, None, summed(stacks)
    return tool


def names_of(addresses):
    """Functions of the program's own addresses in memory, as addr2line has them, inlined ones too."""
    if not addresses:
        return {}
    asked = subprocess.run(["addr2line", "-fCia", "-e", "./infer"] + ["%#x" % (a - 1) for a in addresses],
                           capture_output=True, text=True, check=True).stdout.splitlines()
    names, current = {}, None
    for line in asked:
        if re.fullmatch(r"0x[0-9a-f]+", line):
            current = names.setdefault(int(line, 16) + 1, [])
        elif not re.search(r":(\d+|\?)( |$)", line):
            current.append(line)
    return names


def jemalloc(step):
    def tool(library):
        fresh("je.*")
        cpu, _ = run(["./infer"] + ARGUMENTS, LD_PRELOAD=library,
                     MALLOC_CONF="prof:true,prof_final:true,lg_prof_sample:%d,prof_prefix:je" % step)
        text = open(glob.glob("je.*")[0], encoding="utf-8").read()
        base = min(int(a, 16) for a in re.findall(r"^([0-9a-f]+)-\S+ .*/infer$", text, flags=re.M))
        end = max(int(a, 16) for a in re.findall(r"^[0-9a-f]+-([0-9a-f]+) .*/infer$", text, flags=re.M))
        stacks = []
        for found in re.finditer(r"^@ (.*)\n +t\*: (\d+): (\d+) ", text, flags=re.M):
            addresses = [int(a, 16) - base for a in found.group(1).split()]
            # As jeprof scales them: what one sample stands for, by its mean size.
            objects, size = int(found.group(2)), int(found.group(3))
            if objects and step:
                size = round(size / (1 - 2.718281828459045 ** (-size / objects / (1 << step))))
            stacks.append(([a for a in addresses if 0 <= a < end - base], size))
        names = names_of(sorted({a for s, _ in stacks for a in s}))
        return cpu, None, summed(([n for a in s for n in names.get(a, [])], size) for s, size in stacks)
    return tool


def python_alone(_):
    return run([sys.executable, "-c", INSIDE])[0], None, {}


MEMRAY_READ = """
import json, memray, sys
stacks = []
for r in memray.FileReader("m.bin").get_leaked_allocation_records(merge_threads=True):
    stacks.append(([f[0] for f in r.hybrid_stack_trace()], r.size))
json.dump(stacks, sys.stdout)
"""


def memray(command):
    fresh("m.bin")
    python = os.path.join(os.path.dirname(command), "python3")
    with open("inside.py", "w", encoding="utf-8") as f:
        f.write(INSIDE)
    cpu, said = run([python, "-m", "memray", "run", "--native", "-q", "-f", "-o", "m.bin", "inside.py"])
    asked, text = run([python, "-c", MEMRAY_READ])
    if not text.startswith("["):
        raise SystemExit("memray: " + (said + text).strip().splitlines()[-1])
    return cpu, asked, summed(json.loads(text))


def main(args):
    repeats = int(args[args.index("-n") + 1]) if "-n" in args else 3
    library = os.path.abspath(args[-1].partition("=")[2])
    memray_at = os.environ.get("MEMRAY") or shutil.which("memray")
    lsan = subprocess.run(["cc", "-print-file-name=liblsan.so"], capture_output=True, text=True, check=True).stdout.strip()
    lsan = os.path.realpath(lsan)
    je = next((line.split()[-1] for line in subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True,
               check=False).stdout.splitlines() if "libjemalloc.so.2" in line), None)
    tools = [("the program alone", alone, "", "alone"),
             ("tiermalloc, `report`", tiermalloc, library, "alone"),
             ("heaptrack", heaptrack, shutil.which("heaptrack"), "alone"),
             ("LeakSanitizer, fast stacks", sanitizer(False), os.path.exists(lsan) and lsan, "alone"),
             ("LeakSanitizer, slow stacks", sanitizer(True), os.path.exists(lsan) and lsan, "alone"),
             ("jemalloc, 1 sample in 512 KiB", jemalloc(19), je, "alone"),
             ("jemalloc, every allocation", jemalloc(0), je, "alone"),
             ("Python that calls it", python_alone, "", "python"),
             ("memray --native", memray, memray_at, "python")]
    missing = [t[0] for t in tools if t[2] is None or t[2] is False]
    tools = [t for t in tools if t[0] not in missing]
    costs, asking, said = {t[0]: [] for t in tools}, {t[0]: [] for t in tools}, {}
    source = os.path.join(HERE, "infer.cpp")
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        for out, extra in (("infer", []), ("libinfer.so", ["-shared", "-fPIC"])):
            subprocess.run(["c++", "-std=c++17", "-O2", "-g", "-pthread", "-o", out, source] + extra, check=True)
        for n in range(repeats):
            for name, tool, given, _ in tools[n % len(tools):] + tools[:n % len(tools)]:
                cpu, asked, found = tool(given)
                costs[name].append(cpu)
                asking[name].append(asked)
                said.setdefault(name, []).append(found)
        os.chdir("/")
    least = {name: min(c) for name, c in costs.items()}
    base = {"alone": least["the program alone"], "python": least.get("Python that calls it", 0)}

    def bytes_of(name, function):
        all_said = sorted({found.get(function, 0) for found in said[name]})
        return ("%d" % all_said[0] if len(all_said) == 1 else "%d..%d" % (all_said[0], all_said[-1]))

    print("`infer %s`: 1.18 million allocations; each of 500 sessions loses unreachable blocks (`leak_meta`) and keeps"
          % " ".join(ARGUMENTS))
    print("one more in a cache that only grows (`grow_cache`). The least processor time of %d interleaved runs.\n" % repeats)
    rows = []
    for name, _, _, kind in tools:
        bare = name in ("the program alone", "Python that calls it")
        report = "" if asking[name][0] is None else "%.2f s" % min(asking[name])
        rows.append([name, "%.3f s" % least[name], "%.2f" % (least[name] / base[kind]), report] +
                    [("" if bare else bytes_of(name, f)) for f in ("leak_meta", "grow_cache")])
    table(["", "CPU", "of the program's", "its report", "leak_meta, bytes", "grow_cache, bytes"], rows)
    print("\njemalloc counts size classes. LeakSanitizer looks after static destructors have run, and so calls the cache")
    print("unreachable. memray looks before them: the nodes of the cache's table are still there.")
    if missing:
        print("\nNot installed, left out: %s." % ", ".join(missing))
    if "heaptrack" in said and said["heaptrack"][0] != said["tiermalloc, `report`"][0]:
        print("\nheaptrack and tiermalloc differ: %s, %s" % (said["heaptrack"][0], said["tiermalloc, `report`"][0]))


main(sys.argv[1:])
