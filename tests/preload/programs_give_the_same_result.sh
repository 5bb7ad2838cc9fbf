#!/bin/bash
# SPDX-License-Identifier: MIT
# H47, H51, H84, H86, log 9 and the engines' surroundings: real programs, those present, print the
# same and end with the same status with and without the library: shells and their children,
# interpreters with threads, forks and subprocess storms, compilers, compression, git, databases,
# the Java machine with its collector.
# Failure: another status, other output, or a line of ours on stderr.
set -u
cd "$TMPDIR" || exit 1
export LC_ALL=C HOME=$TMPDIR GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' \
	GIT_COMMITTER_DATE='2020-01-01T00:00:00Z' PYTHONDONTWRITEBYTECODE=1
passed=0 failed=0 skipped=0

# same NAME COMMAND-IT-NEEDS SCRIPT
same() {
	local name=$1 need=$2 script=$3 alone under
	if ! command -v "$need" >/dev/null 2>&1; then
		echo "skipped $name: no $need"; skipped=$((skipped + 1)); return
	fi
	rm -rf work; mkdir work
	(cd work && bash -c "$script") >alone.out 2>alone.err; alone=$?
	if [ $alone != 0 ]; then
		echo "skipped $name: fails by itself, status $alone"; skipped=$((skipped + 1)); return
	fi
	rm -rf work; mkdir work
	(cd work && env LD_PRELOAD="$TM_LIB" bash -c "$script") >under.out 2>under.err; under=$?
	if [ $under != 0 ] || ! cmp -s alone.out under.out || grep -q tiermalloc under.err; then
		echo "$name: status $under"; diff alone.out under.out | head -5; head -5 under.err
		failed=$((failed + 1)); return
	fi
	passed=$((passed + 1))
	[ -n "${TM_TIMES:-}" ] && echo "$SECONDS s after $name"
}

same shell-tree bash 'for i in 1 2 3 4 5 6 7 8; do x=$(echo $i | sed s/1/one/ | tr a-z A-Z | sort | cat); (echo "$x" | awk "{print \$1 * 2}") & wait; done'
same command-substitution bash 'for i in $(seq 300); do x=$(/bin/echo $i); done; echo $x; ulimit -s 256; /bin/true; echo $?'
same ldd bash 'ldd /bin/bash | sed "s/(.*//" | grep -v -F "$TM_LIB"; ls / | head -3'
same coreutils sort 'seq 300000 | shuf --random-source=<(yes) | sort -n | md5sum; seq 200000 | tac | sort -S 1M --parallel=2 | md5sum; seq 100000 | split -l 1000 && cat x* | wc; find /usr/share -maxdepth 1 | sort | md5sum'
same sed-awk awk 'seq 100000 | awk "{a[\$1%1000]+=\$1} END {for (i=0;i<1000;i+=100) print a[i]}"; seq 50000 | sed -n "s/^1\(.*\)0$/\1/p" | md5sum'
same grep grep 'seq 200000 | grep -E "(12|34).*(56|78)" | md5sum; seq 200000 | grep -c -P "(?<=1)2"'
same compression xz 'seq 60000 > f; for c in "gzip -9" "bzip2" "xz -T2"; do $c -c f | ${c%% *} -dc | cmp - f && echo $c; done; tar cf - f | tar tf -'
same perl perl 'perl -e "my %h; for (1..200000) { \$h{\$_ % 5000} .= \"x\" x (\$_ % 7) } print length(join \"\", map { \$h{\$_} } sort keys %h), \"\\n\"; for (1..20) { my \$p = fork; if (!\$p) { my @a = (1) x 10000; exit(@a == 10000 ? 0 : 1) } waitpid \$p, 0; die if \$? }"'
same python python3 'python3 -c "
import json, threading, zlib, re, hashlib, random
random.seed(1)
d = {str(i): [random.random() for _ in range(i % 50)] for i in range(3000)}
s = json.dumps(d); print(hashlib.md5(s.encode()).hexdigest(), len(zlib.compress(s.encode())), json.loads(s) == d)
r = []
def work(n):
    x = [bytearray(i % 5000) for i in range(20000)]; r.append(sum(map(len, x)))
t = [threading.Thread(target=work, args=(i,)) for i in range(8)]
[x.start() for x in t]; [x.join() for x in t]; print(sorted(r), len(re.findall(r\"(\d)\1\", s)))
"'
same python-subprocess python3 'python3 -c "
import subprocess, threading
out = []
def work(n):
    for i in range(25):
        out.append(subprocess.run([\"/bin/echo\", str(n * 100 + i)], capture_output=True, text=True).stdout)
t = [threading.Thread(target=work, args=(i,)) for i in range(6)]
[x.start() for x in t]; [x.join() for x in t]; print(len(out), sorted(map(int, out))[-3:])
"'
same python-fork-pool python3 'python3 -c "
import multiprocessing as m
def f(n): return sum(len(bytes(i)) for i in range(n))
if __name__ == \"__main__\":
    with m.get_context(\"fork\").Pool(4) as p: print(sum(p.map(f, range(200, 600))))
"'
same python-sqlite python3 'python3 -c "
import sqlite3
c = sqlite3.connect(\"db\"); c.execute(\"create table t(a, b)\")
c.executemany(\"insert into t values (?, ?)\", ((i % 997, \"x\" * (i % 300)) for i in range(40000))); c.execute(\"create index i on t(a)\")
print(c.execute(\"select a, sum(length(b)) s from t group by a order by s desc, a limit 3\").fetchall()); c.commit()
"'
same sqlite sqlite3 'sqlite3 db "create table t(a,b); with recursive n(i) as (select 1 union all select i+1 from n where i<100000) insert into t select i, hex(i*i) from n; create index x on t(b); select count(*), max(b) from t; vacuum; pragma integrity_check;"'
same git git 'git init -q . && for i in 1 2 3; do seq $i 20000 > f$i; mkdir -p d$i; seq 100 | split -l 1 - d$i/; git add -A; git -c user.name=n -c user.email=e commit -qm c$i; done; git gc -q; git log --stat | md5sum; git fsck --no-progress; git diff HEAD~2 | wc -l; git status --porcelain'
same gcc gcc 'echo "#include <stdio.h>
int main(void){for(int i=0;i<5;i++)printf(\"%d\\n\",i);}" > a.c; gcc -O2 -flto -o a a.c && ./a; gcc -O2 -S -o - a.c | md5sum'
same g++ g++ 'echo "#include <map>
#include <string>
#include <iostream>
int main(){std::map<std::string,int>m;for(int i=0;i<50000;i++)m[std::to_string(i%999)]+=i;std::cout<<m[\"7\"]<<std::endl;}" > a.cc; g++ -O1 -o a a.cc && ./a'
same make make 'printf "all: $(seq -s " " 40)\n%%:\n\t@test \$@ -gt 0 && echo \$@\n" > Makefile; make -s -j4 | sort -n | tail -2'
same node node 'node -e "
const {Worker, isMainThread} = require(\"worker_threads\"); const crypto = require(\"crypto\"), zlib = require(\"zlib\");
let a = []; for (let i = 0; i < 300000; i++) { a.push({i, s: \"x\".repeat(i % 20)}); if (a.length > 50000) a = []; }
let b = []; for (let i = 0; i < 2000; i++) b.push(Buffer.alloc(i * 20, i & 255));
console.log(a.length, crypto.createHash(\"md5\").update(Buffer.concat(b)).digest(\"hex\"), zlib.gunzipSync(zlib.gzipSync(b[1999])).length);
let n = 0; for (let i = 0; i < 4; i++) { const w = new Worker(\"require(\\\"worker_threads\\\").parentPort.postMessage(1)\", {eval: true}); w.on(\"message\", () => { if (++n == 4) console.log(\"workers\") }) }
"'
same java java 'java -version 2>&1 | head -1; echo "public class G { public static void main(String[] a) throws Exception { Thread[] t = new Thread[4]; for (int k = 0; k < 4; k++) { t[k] = new Thread(() -> { Object[] o = new Object[1000]; for (int i = 0; i < 200000; i++) o[i % 1000] = new byte[i % 3000]; }); t[k].start(); } for (Thread x : t) x.join(); java.nio.ByteBuffer b = null; for (int i = 0; i < 200; i++) b = java.nio.ByteBuffer.allocateDirect(1 << 20); System.gc(); System.out.println(b.capacity()); } }" > G.java; for gc in Serial G1; do java -Xmx200m -XX:+Use${gc}GC G.java || exit 1; done'
same redis redis-server 'redis-server --port 0 --unixsocket $PWD/s --save "" --daemonize yes --logfile log >/dev/null; for i in 1 2 3 4 5 6 7 8 9; do [ -S s ] && break; sleep .2; done; seq 20000 | sed "s/.*/set k& v&/" | redis-cli -s s --pipe | tail -1; redis-cli -s s dbsize; redis-cli -s s debug reload; redis-cli -s s bgsave >/dev/null; redis-cli -s s get k77; redis-cli -s s shutdown nosave'
same openssl openssl 'seq 100000 | openssl dgst -sha256; openssl enc -aes-128-cbc -K 00 -iv 00 -in /bin/bash 2>/dev/null | md5sum; openssl prime 7919'
same nroff nroff 'printf ".TH A 1\n.SH NAME\na \\- b\n" | nroff -man | head -5'
same gdb gdb 'gdb -nx -batch -ex "print 6*7"'
same clang clang 'echo "int f(int a){return a*3;}" | clang -O2 -x c -S -o - - | grep -c mul; clang --version | head -1'
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
