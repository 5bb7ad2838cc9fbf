#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Of each verb: the options that tiermalloc(1) describes, those that the completion offers and those that
the command takes are the same."""
import os
import re
import subprocess
import sys

TOOL, SRC = os.environ["TM_BUILD"] + "/tiermalloc", os.environ["TM_SRC"]
problems = []
page = open(SRC + "/man/tiermalloc.1", encoding="utf-8").read().split(".Sh ENVIRONMENT")[0]


shown = subprocess.run([TOOL, "--help"], capture_output=True, text=True, check=True).stdout
VERBS = sorted(set(re.findall(r"^  tiermalloc (\w+)", shown, flags=re.M)))


def described():
    """Options by verb: of the item's heading, and of the list in its text."""
    found, verbs, last = {}, [], ""
    for line in page.split(".Sh DESCRIPTION")[1].splitlines():
        heading = re.match(r"\.It Cm (\w+)", line)
        if heading and heading[1] in VERBS:
            verbs = verbs + [heading[1]] if last.startswith(".It Cm ") else [heading[1]]
            for verb in verbs:
                found.setdefault(verb, set())
        if heading and heading[1] in VERBS or line.startswith(".It Fl") or line.startswith(".It Ev"):
            words = set(re.findall(r"\bFl (-?[a-z][a-z-]*)", line)) if not line.startswith(".It Ev") else set()
            for verb in verbs:
                found[verb] |= {"-" + w for w in words}
        last = line
    return found


def offered(verb):
    script = SRC + "/packaging/tiermalloc.bash-completion"
    words = set()
    for begin in ("-", "--"):
        run = subprocess.run(["bash", "-c", ". %s; COMP_WORDS=(tiermalloc %s %s); COMP_CWORD=2; _tiermalloc; "
                              "printf '%%s\\n' \"${COMPREPLY[@]}\"" % (script, verb, begin)], capture_output=True, text=True,
                             check=True)
        words |= set(run.stdout.split())
    return words - {"--"}


def takes(verb, option):
    env = dict(os.environ, TIERMALLOC_DIR=os.getcwd() + "/none")
    for words in ([option, "1"], [option]):  # with a value, or what it takes for one
        try:
            run = subprocess.run([TOOL, verb] + words, capture_output=True, text=True, check=False, env=env, timeout=2,
                                 stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return True  # it serves
        if "unknown option '%s'" % option not in run.stderr:
            return True
    return False


pages = described()
for verb in VERBS:
    words = pages.get(verb)
    if words is None:
        problems.append("%s: tiermalloc(1) has no item" % verb)
        continue
    if offered(verb) != words:
        problems.append("%s: the page has %s, the completion %s" % (verb, sorted(words - offered(verb)),
                                                                    sorted(offered(verb) - words)))
    for option in sorted(words | offered(verb)):
        if not takes(verb, option):
            problems.append("%s does not take %s" % (verb, option))
    if takes(verb, "--no-such-option") and verb not in ("help",):
        problems.append("%s takes --no-such-option" % verb)
print("\n".join("PROBLEM " + p for p in problems) or "%d verbs" % len(pages))
sys.exit(bool(problems))
