#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# needs: chromium
"""Chromium shows the pages from file:// without an error, wide and narrow, whatever the report holds;
names that look like markup are text."""
import os
import re
import subprocess
import sys

from common import NAMES, SRC, expect, export, finish, path, report


def render(file, width, *options):
    run = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                          f"--user-data-dir={os.getcwd()}/profile", f"--window-size={width},900", "--enable-logging=stderr",
                          "--virtual-time-budget=8000", *options, "--dump-dom", "file://" + os.path.abspath(file)],
                         capture_output=True, text=True)
    for line in run.stderr.splitlines():
        expect("CONSOLE" not in line, f"{file} at {width}: {line}")
    return run.stdout


def text_of(dom):
    """Without what the page carries."""
    body = re.sub(r"<script.*?</script>|<style.*?</style>", "", dom, flags=re.S)
    return re.sub(r"&(lt|gt|amp|quot|nbsp);", lambda m: {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "nbsp": " "}[m.group(1)],
                  re.sub(r"<[^>]*>", " ", body))


def check(name, file, width):
    doc = report(name)
    dom = render(file, width)
    expect('data-ready="yes"' in dom, f"{name} at {width}: is not ready: {dom[-300:]}")
    text = text_of(dom)
    for word in [doc["verdict"]["text"], doc["process"]["program"], *(l["site"] for l in doc["leaks"]),
                 *(l["hint"] for l in doc["leaks"]), *doc["blind_spots"]]:
        expect(word is None or re.sub(r"\s+", " ", word) in re.sub(r"\s+", " ", text), f"{name} at {width}: lacks {word!r}")
    for each in doc["gpu"]:
        expect(f"{each['dev']} {each['memory']}" in text, f"{name} at {width}: no bar of {each['memory']}")
    # What is not the page's own element was made from text.
    expect(not re.search(r"<(img|iframe|object|link|base)\b", dom.split("<body", 1)[1]), f"{name} at {width}: foreign elements")
    wanted = ["leaks", "balance", "timeline", "stacks", "ages", "sites", "blind"]
    wanted += ["lifetimes", "pages", "classes", "devices", "more"] if name != "unknown" else []
    for section in wanted:
        expect(f'<section id="{section}"' in dom, f"{name} at {width}: no section {section}")


for each in NAMES:
    export(path(each), "html", to=each + ".html")
    for w in (1280, 420):
        check(each, each + ".html", w)
export(path("server"), "html", "--uncompressed", to="plain.html")
check("server", "plain.html", 1280)
with open("big.json", "wb") as f:
    subprocess.run([sys.executable, os.path.join(SRC, "tests/exports/make_report.py"), "--sites", "20000"], stdout=f, check=True)
export("big.json", "html", to="big.html")
expect("50 of 20,000 sites" in text_of(render("big.html", 1280)), "20,000 sites are not shown")
finish()
