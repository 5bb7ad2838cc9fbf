# SPDX-License-Identifier: MIT
"""What the lints share: the files of the project, the .def tables, and how a lint ends."""
import os
import re
import subprocess
import sys

SRC = os.environ.get("TM_SRC") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("TM_BUILD", "")
LIB = os.environ.get("TM_LIB", "")
# Given programs and recorded data: not ours to format or to cut.
GIVEN = ("tests/bench/", "tests/data/")


def files(*extensions, under=""):
    """The project's files, relative to its root: those of git, in a tarball those that lie there."""
    git = subprocess.run(["git", "-C", SRC, "ls-files", "-z", "-co", "--exclude-standard"],
                         capture_output=True, text=True)
    if git.returncode == 0 and os.path.exists(os.path.join(SRC, ".git")):
        names = [n for n in git.stdout.split("\0") if n and os.path.isfile(os.path.join(SRC, n))]
    else:
        names = []
        for folder, folders, here in os.walk(SRC):
            folders[:] = [f for f in folders if not f.startswith("build") and f != "autom4te.cache"]
            names += [os.path.relpath(os.path.join(folder, n), SRC) for n in here]
        generated = {"configure", "aclocal.m4", "Makefile.in", "config.h.in", "configure~", "config.h.in~"}
        names = [n for n in names if n not in generated]
    return sorted(n for n in set(names)
                  if n.startswith(under) and (not extensions or n.endswith(extensions)))


def read(name):
    with open(os.path.join(SRC, name), encoding="utf-8", errors="replace") as f:
        return f.read()


def table(name):
    """Rows of an X-macro table: lists of arguments, strings unquoted. None where there is no table."""
    path = f"shim/base/{name}.def"
    if not os.path.exists(os.path.join(SRC, path)):
        return None
    text = re.sub(r"/\*.*?\*/", " ", read(path), flags=re.S)
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", " ", text, flags=re.M)
    rows, at = [], 0
    opening = re.compile(r"\b[A-Z][A-Z0-9_]*\s*\(")
    while m := opening.search(text, at):
        args, at = arguments(text, m.end())
        rows.append(args)
    return rows


def arguments(text, at):
    """Splits at the commas of the outermost parenthesis that was just opened."""
    args, depth, word = [], 0, ""
    while at < len(text):
        c = text[at]
        if c == '"':
            end = at + 1
            while text[end] != '"':
                end += 2 if text[end] == "\\" else 1
            word += text[at:end + 1]
            at = end + 1
            continue
        if c == ")" and depth == 0:
            args.append(plain(word))
            return args, at + 1
        if c == "," and depth == 0:
            args.append(plain(word))
            word = ""
        else:
            depth += (c == "(") - (c == ")")
            word += c
        at += 1
    return args, at


def plain(word):
    """An argument without quotes; adjacent string literals are one."""
    word = word.strip()
    parts = re.findall(r'"((?:[^"\\]|\\.)*)"', word)
    if parts and re.fullmatch(r'(\s*"(?:[^"\\]|\\.)*"\s*)+', word):
        return "".join(parts).replace('\\"', '"').replace("\\\\", "\\")
    return word


def command(*words):
    """Output of a tool; a tool that fails ends the lint."""
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def skip(reason):
    print(reason)
    sys.exit(77)


def finish(problems, seen, what):
    """Fails with the problems, and where nothing was looked at: a lint that finds nothing is broken."""
    if not seen:
        problems = problems + [f"no {what} found: the lint looks in the wrong place"]
    for p in problems:
        print(p)
    if not problems:
        print(f"{seen} {what}")
    sys.exit(1 if problems else 0)
