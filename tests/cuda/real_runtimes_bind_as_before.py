#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""NVIDIA's own runtimes bind the same with the library: the same lookups in the same order with the
same results and statuses, and exactly the functions of the table replaced. The wheels come from the
Python registry into the build folder (a cache; nothing of them is committed), the small runtimes of
CUDA 11, 12 and 13 in check, cuBLAS, cuDNN and others in soak. The driver is the fake one, which refuses
private tables: every runtime stops there with its own error, and that is left alone."""
import os
import re
import subprocess
import sys
import zipfile

BUILD, SRC, TESTS, LIB = (os.environ[k] for k in ("TM_BUILD", "TM_SRC", "TM_TESTS", "TM_LIB"))
CACHE = os.path.join(BUILD, "tests/cuda/wheels")
LONG = bool(os.environ.get("TM_LONG"))
# package, library, functions that make it bind
RUNTIMES = [("nvidia-cuda-runtime-cu12", "libcudart.so.12", ["cudaMalloc", "cudaFree"]),
            ("nvidia-cuda-runtime", "libcudart.so.13", ["cudaMalloc", "cudaFree"]),
            ("nvidia-cuda-runtime-cu11", "libcudart.so.11.0", ["cudaMalloc", "cudaFree"])]
LARGE = [("nvidia-nvjitlink-cu12", "libnvJitLink.so.12", []),
         ("nvidia-cublas-cu12", "libcublas.so.12", ["cublasCreate_v2"]),
         ("nvidia-cusparse-cu12", "libcusparse.so.12", ["cusparseCreate"]),
         ("nvidia-curand-cu12", "libcurand.so.10", ["curandCreateGenerator"]),
         ("nvidia-cufft-cu12", "libcufft.so.11", ["cufftCreate"]),
         ("nvidia-cusolver-cu12", "libcusolver.so.11", ["cusolverDnCreate"]),
         ("nvidia-cudnn-cu12", "libcudnn.so.9", ["cudnnCreate"]),
         ("nvidia-cublas", "libcublas.so.13", ["cublasCreate_v2"])]
RTLD_NOW, RTLD_GLOBAL, RTLD_DEEPBIND = 2, 0x100, 8
problems, done, refused = [], [], []


def hooked():
    text = open(os.path.join(SRC, "shim/base/cuda_api.def"), encoding="utf-8").read()
    return set(re.findall(r"^D\((\w+)", text, flags=re.M))


def wheel(package, seconds):
    """The folder of an unpacked wheel, or None with the reason printed."""
    folder = os.path.join(CACHE, package)
    if os.path.exists(folder + "/done"):
        return folder
    if refused:  # one answer is enough where nobody answers
        return None
    os.makedirs(folder, exist_ok=True)
    try:
        got = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check",
                              "--retries", "1", "--timeout", "10",
                              "--only-binary", ":all:", "-d", folder, package],
                             capture_output=True, text=True, timeout=seconds)
        reason = got.stderr.strip().rsplit("\n", 1)[-1] if got.returncode else ""
    except subprocess.TimeoutExpired:
        reason = f"no answer in {seconds} s"
    files = [f for f in os.listdir(folder) if f.endswith(".whl")]
    if reason or not files:
        refused.append(f"{package}: {reason or 'nothing came'}")
        return None
    for name in files:
        with zipfile.ZipFile(os.path.join(folder, name)) as z:
            z.extractall(folder)
        os.unlink(os.path.join(folder, name))
    open(folder + "/done", "w", encoding="utf-8").close()
    return folder


def find(folder, name):
    for where, _, names in os.walk(folder):
        if name in names:
            return os.path.join(where, name)
    return None


def run(command, preload, driver, extra):
    """(lookups, output) of a program under the spy."""
    log = os.path.abspath("spy.log")
    if os.path.exists(log):
        os.unlink(log)
    env = dict(os.environ, LD_PRELOAD=":".join([os.path.join(TESTS, "libspy.so")] + preload), TM_SPY=log,
               LD_LIBRARY_PATH=":".join([driver] + extra))
    got = subprocess.run(command, env=env, capture_output=True, text=True)
    lines = open(log, encoding="utf-8").read().splitlines() if os.path.exists(log) else []
    return lines, f"{got.stdout}{got.stderr}status {got.returncode}"


def compare(what, command, driver, extra=()):
    """Bare and preloaded must differ in nothing but the owners of the functions in the table."""
    bare, bare_out = run(command, [], driver, list(extra))
    ours, ours_out = run(command, [LIB], driver, list(extra))
    table, replaced = hooked(), set()
    if bare_out != ours_out:
        problems.append(f"{what}: ends with\n{ours_out}\ninstead of\n{bare_out}")
    if len(bare) != len(ours):
        problems.append(f"{what}: {len(ours)} lookups instead of {len(bare)}")
    for a, b in zip(bare, ours):
        if a == b:
            if a.endswith(" driver") and a.split()[-2] in table:
                problems.append(f"{what}: not replaced: {a}")
            continue
        export = a.split()[-2]
        if a.endswith(" driver") and b == a[:-len("driver")] + "library" and export in table:
            replaced.add(export)
        else:
            problems.append(f"{what}: '{b}' instead of '{a}'")
    gets = sum(line.startswith("get ") for line in bare)
    done.append(what)
    print(f"{what}: {gets} lookups, {len(bare) - gets} dlsym, {len(replaced)} functions replaced; "
          f"{bare_out.splitlines()[0] if bare_out else ''}")
    if bare and not replaced:
        problems.append(f"{what}: nothing was replaced")
    return len(bare)


def static_client(folder, name):
    """A program with the runtime's archive in it."""
    archive = find(folder, "libcudart_static.a")
    if archive is None:
        return None
    with open("static.c", "w", encoding="utf-8") as f:
        f.write("#include <stdio.h>\n#include <stddef.h>\nint cudaMalloc(void **, size_t); int cudaFree(void *);\n"
                "int main(void) { void *p = NULL; int a = cudaMalloc(&p, 1 << 20), b = cudaFree(p);\n"
                "printf(\"cudaMalloc: %d cudaFree: %d\\n\", a, b); return 0; }\n")
    built = subprocess.run(["cc", "-o", name, "static.c", archive, "-ldl", "-lrt", "-lpthread"],
                           capture_output=True, text=True)
    if built.returncode:
        print(f"{name}: can't be linked: {built.stderr.strip().splitlines()[-1]}")
        return None
    return os.path.abspath(name)


def declarations(folder):
    """Our own words for the interface against the toolkit's headers."""
    typedefs, cuda = find(folder, "cudaTypedefs.h"), find(folder, "cuda.h")
    if typedefs is None or cuda is None:
        return
    text = open(typedefs, encoding="utf-8").read()
    names = set(re.findall(r"\bPFN_(\w+)\)", text))
    rows = re.findall(r"^D\((\w+), (\w+), (\d+), (\w+),",
                      open(os.path.join(SRC, "tests/cuda/fake/driver.def"), encoding="utf-8").read(), flags=re.M)
    for base, export, version, variant in rows:
        wanted = [f"{base}_v{version}"]
        if variant != "NONE":
            wanted.append(f"{base}_v{max(7000, int(version))}_{variant.lower()}")
        # Forms that a later toolkit no longer declares are still in drivers.
        problems.extend(f"{export}: no PFN_{w} in cudaTypedefs.h" for w in wanted if w not in names)
    values = dict(re.findall(r"^ *(CU\w+) *= *(0x[0-9a-fA-F]+|\d+)(?! *<<)\b", open(cuda, encoding="utf-8").read(), flags=re.M))
    ours = re.findall(r"^\t(CU\w+) = (\d+)", open(os.path.join(SRC, "tests/cuda/cu.h"), encoding="utf-8").read(),
                      flags=re.M)
    for name, value in ours:
        if name in values and int(values[name], 0) != int(value):
            problems.append(f"cu.h: {name} is {values[name]}, not {value}")
    known = sum(name in values for name, _ in ours)
    print(f"{len(rows)} functions and {known} of {len(ours)} numbers as in the toolkit's headers")


def main():
    if "TM_HAVE_CUDA 1" not in open(os.path.join(BUILD, "config.h"), encoding="utf-8").read():
        print("built without the CUDA hooks")
        sys.exit(77)
    if os.uname().machine != "x86_64":
        print("the wheels are for x86-64")
        sys.exit(77)
    drivers = {}
    for version, where in ("13.0", ""), ("12.2", "v12020"), ("11.4", "v11040"), ("11.2", "v11020"):
        drivers[version] = os.path.abspath("driver-" + version)
        os.makedirs(drivers[version])
        os.symlink(os.path.join(TESTS, where, "libcuda.so.1"), drivers[version] + "/libcuda.so.1")
    client = os.path.join(TESTS, "real_client")
    for package, library, functions in RUNTIMES:
        folder = wheel(package, 60)
        path = folder and find(folder, library)
        if path is None:
            continue
        if library.endswith(".13"):
            declarations(folder)
        for version, driver in drivers.items():
            compare(f"{library} on {version}", [client, path, str(RTLD_NOW)] + functions, driver)
        compare(f"{library} global", [client, path, str(RTLD_NOW | RTLD_GLOBAL)] + functions, drivers["13.0"])
        # The spy too is passed by where the flag stays: it is the library that drops it.
        lines, _ = run([client, path, str(RTLD_NOW | RTLD_DEEPBIND)] + functions, [LIB], drivers["13.0"], [])
        if sum(line.endswith(" library") for line in lines) == 0:
            problems.append(f"{library} with RTLD_DEEPBIND: passed by")
        program = static_client(folder, "static-" + library)
        if program:
            compare(f"static of {library}", [program], drivers["13.0"])
    for package, library, functions in LARGE if LONG else []:
        folder = wheel(package, 1200)
        path = folder and find(folder, library)
        if path is None:
            continue
        if not functions:  # others need it
            continue
        extra = {os.path.dirname(find(os.path.join(CACHE, p), n) or "") for p, n, _ in RUNTIMES + LARGE}
        compare(library, [client, path, str(RTLD_NOW)] + functions, drivers["13.0"], sorted(extra - {""}))
    if not done:
        print(f"no runtime could be had: {refused[0] if refused else 'none in the wheels'}")
        sys.exit(77)
    print("\n".join(refused + problems[:40]))
    sys.exit(1 if problems else 0)


main()
