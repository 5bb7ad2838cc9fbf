#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Output that cannot be written is an error with a reason, status 1, whatever was found; a reader that goes
away early ends the command as it ends any other, without a word. Each state of JSON is valid by the schema."""
import json
import os
import resource
import signal
import subprocess
import sys

TOOL, SRC = os.environ["TM_BUILD"] + "/tiermalloc", os.environ["TM_SRC"]
problems = []
subprocess.run([os.environ["TM_BUILD"] + "/tests/tools/make_ledger", "l.tm", "2000"], check=True)
os.mkdir("folder")
os.mkdir("empty")
os.link("l.tm", "folder/1-2.tm")
VERBS = [["report", "l.tm"], ["report", "--json", "l.tm"], ["leaks", "l.tm"], ["leaks", "--json", "l.tm"], ["frag", "l.tm"], ["explain", "l.tm"],
         ["explain", "--json", "l.tm"], ["symbols", "l.tm"], ["ls", "folder"], ["ls", "empty"], ["gc", "--dry-run", "folder"], ["top", "l.tm"],
         ["diff", "l.tm", "l.tm"], ["diff", "--json", "l.tm", "l.tm"], ["merge", "l.tm", "-o", "-"], ["tune", "l.tm", "-o", "-"], ["config"],
         ["config", "--man"], ["doctor"], ["help"], ["help", "run"], ["report", "--help"], ["export", "--schema"]]
VERBS += [["export", "--format", f, "l.tm", "-o", "-"] for f in ("pprof", "folded", "speedscope", "chrome", "prometheus", "heap_v2", "json", "html")]
VERBS += [["export", "--format", "json", "l.tm", "-o", "/dev/full"], ["report", "--html", "/dev/full", "l.tm"], ["merge", "l.tm", "-o", "/dev/full"],
          ["tune", "l.tm", "-o", "/dev/full"]]


def quiet():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)


for words in VERBS:
    with open("/dev/full", "w", encoding="utf-8") as full:
        run = subprocess.run([TOOL, *words], stdout=full, stderr=subprocess.PIPE, text=True, preexec_fn=quiet, check=False)
    last = (run.stderr.splitlines() or [""])[-1]
    if run.returncode != 1 or "No space left on device" not in last or "written" not in last and "cannot write" not in last:
        problems.append("%s into a full device: status %d, '%s'" % (words, run.returncode, run.stderr))
    if "/dev/full" in words:
        continue
    with subprocess.Popen([TOOL, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=quiet) as p:
        p.stdout.close()
        words_of_it = p.stderr.read()
    # Short output may have gone into the pipe before it was closed.
    if p.returncode not in (-signal.SIGPIPE, 0, 3, 4) or ("written" in words_of_it or "write" in words_of_it):
        problems.append("%s into a closed pipe: status %d, '%s'" % (words, p.returncode, words_of_it))

# Few sites: the validator takes a second for a few hundred.
os.unlink("folder/1-2.tm")
subprocess.run([os.environ["TM_BUILD"] + "/tests/tools/make_ledger", "l.tm", "20"], check=True)
os.link("l.tm", "folder/1-2.tm")
try:
    import jsonschema
    with open(SRC + "/tools/document/report-1.schema.json", encoding="utf-8") as f:
        validator = jsonschema.Draft202012Validator(json.load(f))
except (ImportError, AttributeError):
    validator = None
with open("one.json", "w", encoding="utf-8") as f:
    subprocess.run([TOOL, "report", "--json", "l.tm"], stdout=f, check=True)
STATES = [["report", "--json", "l.tm"], ["leaks", "--json", "l.tm"], ["frag", "--json", "l.tm"], ["explain", "--json", "l.tm"],
          ["report", "--json", "--since", "1s", "l.tm"], ["diff", "--json", "one.json", "l.tm"], ["merge", "l.tm", "one.json", "folder", "-o", "-"],
          ["merge", "one.json", "-o", "-"], ["report", "--json", "--from-json", "one.json"]]
for words in STATES if validator else []:
    run = subprocess.run([TOOL, *words], capture_output=True, text=True, check=False)
    if "built without jansson" in run.stderr:
        continue
    problems += ["%s: %s: %s" % (words, ".".join(map(str, e.absolute_path)), e.message[:200])
                 for e in list(validator.iter_errors(json.loads(run.stdout)))[:3]]
print("\n".join(problems))
sys.exit(bool(problems))
