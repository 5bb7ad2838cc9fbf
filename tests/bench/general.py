#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""General programs of the distribution under each allocator: CPU time and peak RSS, as ratios.

Question: does the library cost programs that it was not made for? Metric: user + system time and
peak resident set of the program with its children, median of interleaved repeats, as a ratio to
glibc, and geometric means. Refuted where a ratio to glibc passes 1.05 in CPU or 1.3 in peak RSS.

usage: general.py [-n REPEATS] [-p PROGRAM,...] [-w FOLDER] [-o OUT.jsonl] [-l] NAME=PATH ...
  NAME=  is glibc; FOLDER keeps the made input; programs that are not installed are left out.
  The folder of this script, or TM_BENCH, holds the built 'launch'.
"""
import argparse
import collections
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import time

HERE = os.environ.get("TM_BENCH", os.path.dirname(os.path.abspath(__file__)))
WORDS = None


def words(count, seed, vocabulary=40000):
    """Seeded words of a made vocabulary, frequent ones more often."""
    global WORDS
    if WORDS is None:
        r = random.Random(1)
        letters = "etaoinshrdlcumwfgypbvk"
        WORDS = ["".join(r.choice(letters) for _ in range(2 + int(r.expovariate(0.25)))) for _ in range(vocabulary)]
    r = random.Random(seed)
    return [WORDS[int(vocabulary * r.random() ** 3)] for _ in range(count)]


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def text_file(path, lines, seed):
    w = words(lines * 9, seed)
    write(path, "".join(" ".join(w[i * 9:i * 9 + 9]) + "\n" for i in range(lines)))


def c_source(path):
    out = ["#include <stdio.h>\n#include <string.h>\nstruct s { int a[16]; struct s *next; double d; };\n"]
    for i in range(120):
        out.append("static int f%d(struct s *p, int n)\n{\n\tint t = %d;\n\tfor (int i = 0; i < n; i++) {\n"
                   "\t\tif (p->a[i & 15] > t) t += p->a[(i * %d) & 15]; else t ^= i << %d;\n"
                   "\t\tswitch (t %% %d) { case 0: p = p->next ? p->next : p; break; case 1: p->d += t; break;\n"
                   "\t\tcase 2: t -= (int)strlen(\"%s\"); break; default: p->a[i & 7] = t; }\n\t}\n\treturn t%s;\n}\n"
                   % (i, i * 7, i % 13 + 1, i % 9, i % 5 + 3, "x" * (i % 17),
                      " + f%d(p, n - 1)" % (i - 1) if i % 3 else ""))
    out.append("int main(int c, char **v)\n{\n\tstruct s x = {0};\n\t(void)v;\n\treturn f119(&x, c)%s;\n}\n"
               % "".join(" + f%d(&x, c)" % i for i in range(0, 119)))
    write(path, "".join(out))


CPP = """#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>
template <int N> struct node { std::map<int, std::vector<std::variant<int, std::string, double>>> m;
	std::unordered_map<std::string, std::shared_ptr<node<N - 1>>> kids;
	std::function<int(int)> f = [this](int x) { return x + (int)m.size() + N; };
	int sum() const { int s = 0; for (auto &[k, v] : m) s += k + (int)v.size();
		for (auto &[k, v] : kids) s += v ? v->sum() : (int)k.size(); return s + f(N); } };
template <> struct node<0> { int sum() const { return 1; } };
int main(int c, char **v) { node<6> n; std::regex r("(a|b)*c[0-9]+"); std::smatch m; std::string s(v[0]);
	std::vector<std::string> x(v, v + c); std::sort(x.begin(), x.end());
	std::cout << n.sum() << std::regex_search(s, m, r) << x.size() << std::endl; }
"""

PYTHON = """import json, re, collections
text = open("words.txt").read()
seen = collections.Counter(re.findall(r"[a-z]+", text))
rows = [{"id": i, "word": w, "n": n, "tags": [w[:k] for k in range(len(w))]} for i, (w, n) in enumerate(seen.items())]
for _ in range(3):
    rows = json.loads(json.dumps(rows))
index = collections.defaultdict(list)
for row in rows:
    for tag in row["tags"]:
        index[tag].append(row["id"])
print(len(index), sum(map(len, index.values())))
"""
PERL = """my (%n, %pos); my $line = 0;
open(my $f, '<', 'words.txt'); while (<$f>) { $line++; for my $w (split) { $n{$w}++; push @{$pos{$w}}, $line; } }
my @s = sort { $n{$b} <=> $n{$a} || $a cmp $b } keys %n; my $t = 0;
for my $w (@s) { $t += scalar @{$pos{$w}}; (my $x = $w) =~ s/([aeiou])/uc $1/ge; $n{$x} = join(',', @{$pos{$w}}[0..0]); }
print scalar(@s), " $t\\n";
"""
GAWK = """{ for (i = 1; i <= NF; i++) { n[$i]++; last[$i, NR % 100] = substr($0, i, 12) } }
END { for (w in n) { k++; s = s < length(w) ? length(w) : s; o[k] = toupper(w) "-" n[w] }; m = asort(o); print k, s, m }
"""
LUA = """local n, t = {}, {}
for line in io.lines("words.txt") do
	for w in line:gmatch("%a+") do local e = n[w]; if not e then e = {c = 0, w = w}; n[w] = e end; e.c = e.c + 1 end
end
for w, e in pairs(n) do t[#t + 1] = e end
table.sort(t, function(a, b) return a.c > b.c or (a.c == b.c and a.w < b.w) end)
local parts = {}
for round = 1, 6 do for i, e in ipairs(t) do parts[i] = e.w .. ":" .. e.c + round end end
print(#t, #table.concat(parts, " "))
"""
RUBY = """n = Hash.new { |h, k| h[k] = [] }
File.foreach("words.txt").with_index { |l, i| l.split.each { |w| n[w.dup] << i } }
s = n.sort_by { |k, v| [-v.size, k] }.map { |k, v| [k.capitalize, v.sum, v.map(&:to_s).join(",")[0, 40]] }
4.times { s = s.map { |a, b, c| [a.reverse, b + 1, c + "x"] } }
puts s.size
"""
NODE = """const fs = require("fs"); const n = new Map();
for (const l of fs.readFileSync("words.txt", "utf8").split("\\n")) for (const w of l.split(" ")) n.set(w, (n.get(w) || 0) + 1);
let rows = [...n].map(([w, c], i) => ({i, w, c, t: [...w]}));
for (let k = 0; k < 3; k++) rows = JSON.parse(JSON.stringify(rows));
const b = []; for (let k = 0; k < 3000; k++) { b[k % 64] = Buffer.alloc(1 << (10 + k % 9), k); }
const z = require("zlib"); let s = 0; for (let k = 0; k < 20; k++) s += z.gzipSync(JSON.stringify(rows.slice(k * 500, k * 500 + 2000))).length;
console.log(rows.length, s > 0);
"""
SQL = """PRAGMA journal_mode=off; PRAGMA cache_size=-20000;
CREATE TABLE t(id INTEGER PRIMARY KEY, w TEXT, n INT, x REAL);
WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i < 150000)
INSERT INTO t SELECT i, 'w' || (i * 7919 % 50021) || hex(i * 31), i % 997, i / 3.0 FROM c;
CREATE INDEX tw ON t(w); CREATE INDEX tn ON t(n, x);
SELECT count(*), sum(length(w)) FROM t WHERE w > 'w3';
SELECT n, group_concat(w) FROM (SELECT * FROM t WHERE id < 30000 ORDER BY w) GROUP BY n HAVING n < 3;
SELECT count(*) FROM t a JOIN t b ON a.n = b.n AND a.id < 300;
UPDATE t SET w = w || '!' WHERE n < 300; DELETE FROM t WHERE n > 900;
SELECT json_group_array(json_object('id', id, 'w', w)) FROM t WHERE id < 20000;
"""
POSTSCRIPT = """%!PS
/Times-Roman findfont 9 scalefont setfont
1 1 12 { /page exch def
  1 1 60 { /row exch def 30 row 12 mul 20 add moveto
    page row mul 97 mod { (the quick brown fox ) show } repeat
    newpath 300 row 12 mul 30 add page 3 mul 5 add 0 360 arc row 61 div page 13 div 0.4 setrgbcolor fill
    /d 50 dict def d begin 1 1 40 { dup 20 string cvs cvn exch def } for end } for
  showpage } for
"""
SMT = """(set-logic QF_BV)
(declare-fun a () (_ BitVec 26))(declare-fun b () (_ BitVec 26))(declare-fun c () (_ BitVec 26))
(assert (= (bvmul a b) (_ bv50331653 26)))(assert (bvugt a (_ bv1 26)))(assert (bvugt b a))
(assert (= (bvadd (bvmul a c) (bvmul b b)) (_ bv5432111 26)))(assert (bvult c (_ bv9000000 26)))
(check-sat)
"""


def make_git(folder):
    r = random.Random(4)
    os.makedirs(folder)
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
           "GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z"}
    git = ["git", "-C", folder, "-c", "user.name=b", "-c", "user.email=b@example.org", "-c", "gc.auto=0"]
    subprocess.run(git + ["init", "-q"], check=True, env=env)
    for commit in range(25):
        for _ in range(120):
            text_file(os.path.join(folder, "f%d.txt" % r.randrange(500)), 60, r.randrange(1 << 30))
        subprocess.run(git + ["add", "-A"], check=True, env=env)
        subprocess.run(git + ["commit", "-q", "-m", "c%d" % commit], check=True, env=env)


def prepare(work):
    """The input, once; a stamp says that it is complete."""
    if os.path.exists(os.path.join(work, "complete-3")):
        return
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)

    def at(name):
        return os.path.join(work, name)
    text_file(at("words.txt"), 60000, 2)
    text_file(at("sort.txt"), 600000, 3)
    c_source(at("big.c"))
    for name, text in (("big.cc", CPP), ("w.py", PYTHON), ("w.pl", PERL), ("w.awk", GAWK), ("w.lua", LUA), ("w.rb", RUBY),
                       ("w.js", NODE), ("w.sql", SQL), ("w.ps", POSTSCRIPT), ("w.smt2", SMT)):
        write(at(name), text)
    w = words(400000, 5)
    write(at("w.json"), json.dumps([{"id": i, "w": w[i], "l": w[i * 3:i * 3 + 3], "o": {"k": w[i + 9], "n": i}}
                                    for i in range(60000)]))
    if shutil.which("git"):
        make_git(at("repo"))
    write(at("complete-3"), "")


REDIS = ("redis-server", "--port", "0", "--save", "", "--appendonly", "no", "--unixsocket", "redis.sock",
         "--daemonize", "no", "--logfile", "/dev/null")
GIT = ("git", "-C", "repo", "-c", "gc.auto=0", "-c", "core.pager=cat", "-c", "pack.threads=1")
PROGRAMS = {
    "gcc": ("gcc", "-O2", "-w", "-c", "big.c", "-o", "/dev/null"),
    "g++": ("g++", "-std=c++17", "-O1", "-w", "-c", "big.cc", "-o", "/dev/null"),
    "clang": ("clang", "-O2", "-w", "-c", "big.c", "-o", "/dev/null"),
    "python": (sys.executable, "w.py"),
    "python-malloc": ("env", "PYTHONMALLOC=malloc", sys.executable, "w.py"),
    "perl": ("perl", "w.pl"),
    "gawk": ("gawk", "-f", "w.awk", "words.txt"),
    "lua": ("lua5.4", "w.lua"),
    "ruby": ("ruby", "w.rb"),
    "node": ("node", "w.js"),
    "jq": ("jq", "-c", "map(select(.id % 3 == 0) | {w, l: (.l | join(\"-\")), k: .o.k}) | group_by(.k) | length", "w.json"),
    "sort": ("sort", "--parallel=1", "-S", "100M", "-k", "3", "sort.txt"),
    "xz": ("xz", "-2", "-T1", "-k", "-c", "words.txt"),
    "zstd": ("zstd", "-q", "-15", "-T1", "-c", "words.txt"),
    "sqlite": ("sqlite3", ":memory:", ".read w.sql"),
    "redis": REDIS,
    "git-log": GIT + ("log", "-p", "--stat"),
    "git-repack": GIT + ("pack-objects", "-q", "--all", "--no-reuse-object", "--no-reuse-delta", "--stdout"),
    "ghostscript": ("gs", "-q", "-dBATCH", "-dNOPAUSE", "-sDEVICE=png16m", "-r72", "-sOutputFile=/dev/null", "w.ps"),
    "z3": ("z3", "w.smt2"),
}


def drive_redis(work):
    """Load for the measured server, from a client that has no preload."""
    sock = os.path.join(work, "redis.sock")
    env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    for _ in range(500):
        if os.path.exists(sock):
            break
        time.sleep(0.02)
    for args in (["-t", "set,get,lpush,lpop,sadd,hset,zadd", "-n", "30000", "-r", "20000", "-d", "100", "-c", "8", "-P", "8"],
                 ["-t", "set", "-n", "20000", "-r", "20000", "-d", "900", "-c", "8", "-P", "8"]):
        subprocess.run(["redis-benchmark", "-s", sock, "-q"] + args, env=env, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["redis-cli", "-s", sock, "shutdown", "nosave"], env=env, check=False, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


def libc():
    with open("/proc/self/maps", encoding="ascii", errors="replace") as maps:
        for line in maps:
            if "/libc.so.6" in line or "/libc-2" in line:
                return line.split()[-1]
    return ""


def once(program, path, extra, work):
    """One run: dict with status, cpu_s, rss_mib, faults."""
    env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    # Redis is linked with jemalloc: libc put first makes the base what it is elsewhere.
    env.update(extra)
    env["LAUNCH_PRELOAD"] = path or (libc() if program == "redis" else "")
    env["GIT_CONFIG_GLOBAL"] = env["GIT_CONFIG_SYSTEM"] = "/dev/null"
    result = os.path.join(work, "result")
    with open(os.devnull, "w", encoding="ascii") as null:
        child = subprocess.Popen([os.path.join(HERE, "launch"), result] + list(PROGRAMS[program]), cwd=work, env=env,
                                 stdin=subprocess.DEVNULL, stdout=null, stderr=null)
        if program == "redis":
            drive_redis(work)
        child.wait(600)
    with open(result, encoding="ascii") as f:
        status, _, user, system, rss, faults, _ = f.read().split()
    os.remove(result)
    return {"rc": int(status), "cpu_s": float(user) + float(system), "sys_s": float(system),
            "rss_mib": int(rss) / 1024, "faults": int(faults)}


def geomean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def show(programs, names, got, base):
    """Markdown: per program the base's figures, then each allocator's ratios."""
    def med(p, n, k):
        return statistics.median(r[k] for r in got[p, n])
    others = [n for n in names if n != base]
    print("| program | %s CPU s | peak MiB | %s |" % (base, " | ".join("%s CPU | RSS" % n for n in others)))
    print("|---|--:|--:|" + "--:|" * (2 * len(others)))
    ratios = collections.defaultdict(list)
    for p in programs:
        cells = ["%.2f" % med(p, base, "cpu_s"), "%.1f" % med(p, base, "rss_mib")]
        for n in others:
            if any(r["rc"] for r in got[p, n]):
                cells += ["status %d" % max(r["rc"] for r in got[p, n]), ""]
                continue
            for k in ("cpu_s", "rss_mib"):
                ratio = med(p, n, k) / med(p, base, k)
                ratios[n, k].append(ratio)
                cells.append("%.2f" % ratio)
        print("| %s | %s |" % (p, " | ".join(cells)))
    print("| **geometric mean** | | | %s |" % " | ".join(
        "**%.3f** | **%.3f**" % (geomean(ratios[n, "cpu_s"]), geomean(ratios[n, "rss_mib"])) for n in others))


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("-n", dest="repeats", type=int, default=5)
    parser.add_argument("-p", dest="programs")
    parser.add_argument("-w", dest="work", default="/tmp/tiermalloc-bench-input")
    parser.add_argument("-o", dest="output")
    parser.add_argument("-l", dest="list", action="store_true")
    parser.add_argument("allocators", nargs="*")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(PROGRAMS))
        return
    allocators = []
    for word in arguments.allocators:
        name, _, rest = word.partition("=")
        path, *pairs = rest.split(",")
        allocators.append((name, path, dict(p.split("=", 1) for p in pairs)))
    if not allocators:
        sys.exit(__doc__)
    wanted = arguments.programs.split(",") if arguments.programs else list(PROGRAMS)
    programs = [p for p in wanted if shutil.which(next(w for w in PROGRAMS[p] if "=" not in w and w != "env"))]
    for p in sorted(set(wanted) - set(programs)):
        print("left out, not installed: " + p, file=sys.stderr)
    work = os.path.abspath(arguments.work)
    prepare(work)
    got = collections.defaultdict(list)
    for repeat in range(arguments.repeats):
        turn = repeat % len(allocators)
        for p in programs:
            for name, path, extra in allocators[turn:] + allocators[:turn]:
                run = once(p, path, extra, work)
                got[p, name].append(run)
                if arguments.output:
                    with open(arguments.output, "a", encoding="utf-8") as f:
                        f.write(json.dumps({"program": p, "allocator": name, "repeat": repeat, **run}) + "\n")
        print("repeat %d of %d" % (repeat + 1, arguments.repeats), file=sys.stderr)
    show(programs, [a[0] for a in allocators], got, allocators[0][0])


if __name__ == "__main__":
    main()
