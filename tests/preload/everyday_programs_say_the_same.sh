#!/bin/bash
# SPDX-License-Identifier: MIT
# H01 H02 H71, log 9: ordinary programs (ldd, command substitutions, pipes, compilers, interpreters,
# git, sort) print under us exactly what they print without, on both outputs, with the same status.
# Failure: a difference, noise on stderr, or no end.
set -u
[ -r "$TM_LIB" ] || { echo "no library"; exit 77; }
fail=0 ran=0
seq 1 200000 | awk '{ print ($1 * 7919) % 1000003, $1 }' > numbers
cp "$TM_SRC/tests/preload/whole_family_follows_libc.c" "$TM_SRC/tests/preload/claim.h" .
mkdir -p tests/preload && cp "$TM_SRC/tests/preload/tls_bytes.h" tests/preload

same() { # COMMAND: run by bash -c
	local first=${1%% *}
	command -v "$first" >/dev/null || return 0
	ran=$((ran + 1))
	bash -c "$1" >out.plain 2>err.plain </dev/null; local plain=$?
	LD_PRELOAD=$TM_LIB bash -c "$1" >out.ours 2>err.ours </dev/null; local ours=$?
	if [ $plain != $ours ] || ! cmp -s out.plain out.ours || ! cmp -s err.plain err.ours; then
		echo "'$1': status $plain without us, $ours with us"
		diff out.plain out.ours | head -5
		diff err.plain err.ours | head -5
		fail=1
	fi
}

same 'bash -c "for i in 1 2 3 4 5; do x=\$(echo \$(ls / | wc -l)); done; echo \$x"'
same 'sort -n -k1 numbers | md5sum'
same 'head -40000 numbers | sort --parallel=2 -S 1M -R --random-source=numbers | sort | md5sum'
same 'xz -0 -c -T2 numbers | xz -dc | cmp - numbers'
same 'tar cf - numbers claim.h | gzip -c | tar tzf -'
same 'grep -c "9*8.*7" numbers'
same 'sed "s/7\(.*\)1/\1/g" numbers | md5sum'
same 'awk "{ s[\$1 % 999] = s[\$1 % 999] \$2 } END { for (i = 0; i < 999; i++) n += length(s[i]); print n }" numbers'
same 'python3 -c "import json,re,collections; d={str(i):list(range(i%50)) for i in range(30000)}; print(len(json.dumps(d)), len(re.findall(\"1, 2\", json.dumps(d))))"'
same 'python3 -c "import subprocess; print(sum(len(subprocess.check_output([\"echo\", str(i)])) for i in range(40)))"'
same 'perl -e "my %h; \$h{\$_ % 5003} .= \$_ for 1..200000; print length(join q(), map { \$h{\$_} } sort keys %h), qq(\n)"'
same 'cc -O2 -w -c -o x.o whole_family_follows_libc.c && size x.o | tail -1'
same 'git init -q r && cd r && cp ../claim.h . && git add . && git -c user.name=a -c user.email=b -c commit.gpgsign=false commit -q -m m --date=2020-01-01T00:00:00Z && git log --format=%s --stat && git fsck; rm -rf ../r'
same 'find /usr/include -name "*.h" -newer /nonexistent 2>&1 | head -3'
same 'find /usr/include/linux -name "a*.h" | sort | xargs cat | md5sum'
same 'env -i /bin/ls /'
same 'gdb -batch -ex "print 6*7" -ex "python print(2**100)"'
same 'readelf -sW /bin/bash | md5sum'
same 'openssl dgst -sha256 numbers'
same 'sqlite3 :memory: "create table t(a,b); with recursive c(x) as (select 1 union all select x+1 from c where x<50000) insert into t select x, x*x%997 from c; select count(*), sum(b) from t group by b%3;"'
same 'node -e "let m={};for(let i=0;i<200000;i++){m[i%5003]=(m[i%5003]||0)+i};console.log(Object.keys(m).length,m[77])"'
bash_ldd() { ldd /bin/bash | sed 's/(0x.*//'; }
plain=$(bash_ldd)
ours=$(LD_PRELOAD=$TM_LIB bash_ldd 2>&1 | grep -v "$(basename "$TM_LIB")")
[ "$plain" = "$ours" ] || { echo "ldd: $ours"; fail=1; }
[ $ran -ge 8 ] || { echo "only $ran programs are here"; fail=1; }
exit $fail
