#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Of each verb: the options that tiermalloc(1) describes, those that the completion offers, those that its
--help lists and those that the command takes are the same, and so are the forms of the call."""
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


def bare(text):
    """Without what layout and fonts are for; names of arguments are written small in the page, large in help."""
    return re.sub(r"\s", "", text).upper()


def synopses():
    """Forms of each verb's call in the page's synopsis, as bare text."""
    found = {}
    for form in page.split(".Sh SYNOPSIS")[1].split(".Sh DESCRIPTION")[0].split(".Nm tiermalloc\n")[1:]:
        lines, verbs = form.splitlines(), []
        if lines[0].startswith(".Cm "):
            verbs = lines.pop(0)[4:].split(" | ")
        text = ""
        for line in lines:
            optional = line.startswith(".Op ")
            words = line[4:] if optional else line[1:]
            words = re.sub(r"\bNs\b", "", re.sub(r"\bFl (?=-|\w)", "-", words))
            words = re.sub(r"(^| )(Ar|Cm|Fl|Nm)\b", lambda m: m[1] + ("-" if m[2] == "Fl" else ""), words)
            text += "[%s]" % words if optional else words
        for verb in verbs:
            found.setdefault(verb, []).append(bare(text))
    return found


def helped(verb):
    """What its --help lists: the forms of the call, options with the names of their values."""
    run = subprocess.run([TOOL, verb, "--help"], capture_output=True, text=True, check=False)
    same = subprocess.run([TOOL, "help", verb], capture_output=True, text=True, check=False)
    if run.returncode or run.stderr or run.stdout != same.stdout:
        problems.append("%s --help: status %d, %s%s" % (verb, run.returncode, run.stderr, same.stdout))
    for line in run.stdout.splitlines():
        if len(line) > 80 or line.rstrip() != line and verb != "help":
            problems.append("%s --help: '%s'" % (verb, line))
    usage = run.stdout.split("\n\n", maxsplit=1)[0].replace("usage:", "").split("tiermalloc " + verb)[1:]
    options = {}
    for line in run.stdout.splitlines():
        option = re.match(r"  (-[a-z-]+)(?: ([A-Z:]+))?(?:  |$)", line)
        if option and option[1] != "--help":
            options[option[1]] = option[2] or ""
    return [bare(u) for u in usage], options


def values():
    """The names of options' values in the page, by verb: in headings, items and the synopsis."""
    found = {}
    forms = page.split(".Sh SYNOPSIS")[1].split(".Sh DESCRIPTION")[0].split(".Nm tiermalloc\n")[1:]
    for form in forms:
        for verbs in re.findall(r"\A\.Cm (.*)", form):
            for each in verbs.split(" | "):
                for m in re.finditer(r"Fl (-?[a-z-]+)(?: (Ar|Cm) (\w+)(?: : Ns Ar (\w+))?)?", form):
                    value = {"Ar": m[3], "Cm": "kind"}.get(m[2], "") + (":" + m[4] if m[4] else "")
                    found.setdefault(each, {})["-" + m[1]] = value.upper()
    return found


pages, forms, named = described(), synopses(), values()
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
    usage, options = helped(verb)
    if set(options) != words:
        problems.append("%s: the page has %s, its help %s" % (verb, sorted(words - set(options)), sorted(set(options) - words)))
    if sorted(usage) != sorted(forms.get(verb, [])):
        problems.append("%s: the page's synopsis is %s, that of its help %s" % (verb, forms.get(verb), usage))
    for option, value in named.get(verb, {}).items():
        if options.get(option, "") != value:
            problems.append("%s %s: its value is '%s' in the page, '%s' in its help" % (verb, option, value, options.get(option)))
    if takes(verb, "--no-such-option") and verb not in ("help",):
        problems.append("%s takes --no-such-option" % verb)
print("\n".join("PROBLEM " + p for p in problems) or "%d verbs" % len(pages))
sys.exit(bool(problems))
