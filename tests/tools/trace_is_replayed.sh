#!/bin/sh
# SPDX-License-Identifier: MIT
# needs: python3
# A program is recorded and replayed: its requests are there, its sites are named, its end is its own.
fail=0
tool=$TM_BUILD/tiermalloc
no() { echo "$1"; fail=1; }
cat >work.py <<'END'
import ctypes, sys, threading
step = ctypes.CDLL(None).tiermalloc_step
def work():
    for i in range(100):
        scratch = bytearray(70000)
weights = [bytearray(3 << 20) for i in range(8)]
for i in range(20):
    step()
    t = threading.Thread(target=work)
    t.start()
    t.join()
sys.exit(7)
END
"$tool" trace -o work.tmt -- python3 work.py 2>err
[ $? = 7 ] || { cat err; no "the command's status is lost"; }
grep -q '^tiermalloc: trace: [0-9]* events, [0-9]* objects' err || { cat err; no "nothing is said of the trace"; }
"$tool" replay --top 5 work.tmt >out || { cat out; no "replay fails"; }
grep -q '^steps  *20,' out || no "steps are lost"
awk '/^persistent/ { ok = $3 >= 24 } END { exit !ok }' out || no "the weights are not persistent"
awk '/^temporary/ { ok = $2 >= 1900 } END { exit !ok }' out || no "the scratch is not temporary"
grep -q 'python.*+0x' out || no "sites have no names"

# Rules by build-id, as tune writes them, and rules without a file.
site=$(awk '$NF ~ /^[^ ]*python[^ ]*[+]0x/ { print $NF; exit }' out)
name=${site%+*} offset=${site##*+}
[ "$site" ] || no "no site is Python's"
file=$(python3 -c 'import sys
print(next(l.split(None, 5)[5].strip() for l in open("/proc/self/maps") if l.strip().endswith("/" + sys.argv[1])))' "$name")
id=$(readelf -n "$file" 2>/dev/null | sed -n 's/.*Build ID: //p')
if [ "$id" ]; then
	"$tool" replay --rules "site=$id+$offset size>=64K -> tier=session; size=3..4 symbol=x -> tier=session
		site=0123456789abcdef+$offset -> tier=session; site=none.so+1 -> tier=session" work.tmt >out2
	grep -q '^decided by .*rule [1-9]' out2 || { cat out2; no "a rule by build-id decides nothing"; }
	grep -q -- '^  --rules:1:' out2 && { cat out2; no "a rule that decided is listed"; }
	grep -q -- '^  --rules:2: .* (symbols are unknown in a trace)$' out2 || { cat out2; no "symbol: why"; }
	grep -q -- '^  --rules:3: .* (no request of this trace comes from a file with that build-id)$' out2 ||
		{ cat out2; no "build-id: why"; }
	grep -q -- '^  --rules:4: .* (no request of this trace comes from that file)$' out2 || { cat out2; no "file: why"; }
fi
# What is no trace is known by its beginning: the rest, which may have no end, is left.
left=$(head -c 8388608 /dev/zero | { "$tool" replay /dev/stdin 2>err; echo $? >status; wc -c; })
{ [ "$(cat status)" = 2 ] && grep -q "'/dev/stdin' is no trace" err; } || { cat err; no "zeros: status $(cat status)"; }
[ "$left" -gt 0 ] || no "all of what is no trace is read"
if command -v xz >/dev/null; then
	head -c 8388608 /dev/zero | xz -0 >zeros.xz
	"$tool" replay zeros.xz 2>err
	{ [ $? = 2 ] && grep -q "'zeros.xz' is no trace" err; } || { cat err; no "packed zeros"; }
fi
# What a program recorded by itself.
LD_PRELOAD=$TM_LIB TIERMALLOC_TRACE=by.itself python3 work.py
"$tool" trace -o itself.tmt --convert by.itself 2>err || { cat err; no "a recording is not converted"; }
grep -q '^tiermalloc: trace: [0-9]* events, [0-9]* objects' err || { cat err; no "nothing is said of the recording"; }
"$tool" replay itself.tmt | grep -q '^steps  *20,' || no "steps of a recording are lost"
"$tool" trace -o work.tmt --convert itself.tmt 2>err
[ $? = 2 ] && grep -q "'itself.tmt'" err || { cat err; no "a trace is no recording"; }
"$tool" trace -o by.itself --convert by.itself 2>/dev/null && no "a recording is written over"
"$tool" trace -o x --convert by.itself -- true 2>/dev/null
[ $? = 2 ] || no "a recording and a command: status"
"$tool" trace -- true 2>/dev/null
[ $? = 2 ] || no "trace without -o: status"
"$tool" trace -o /no/such/dir/x -- true 2>/dev/null
[ $? = 1 ] || no "a trace that cannot be written: status"
[ $fail = 0 ] || cat out
exit $fail
