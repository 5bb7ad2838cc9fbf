#!/bin/sh
# SPDX-License-Identifier: MIT
# 'doctor' without argument is about the machine; with a process id about that process.
fail=0
tool=$TM_BUILD/tiermalloc
"$tool" doctor >out || { echo "status $?"; cat out; fail=1; }
grep -Evq '^(ok|note|problem) ' out && { echo "odd lines:"; grep -Ev '^(ok|note|problem) ' out; fail=1; }
for word in library: system: processors: "huge pages:" overcommit: mappings: cgroup:; do
	grep -q "$word" out || { echo "'$word' is missing"; fail=1; }
done
(ulimit -v 4000000; "$tool" doctor) | grep -q "address space 3.8 GiB" || { echo "ulimit -v is not seen"; fail=1; }
LD_PRELOAD=/x/libjemalloc.so.2 "$tool" doctor 2>/dev/null | grep -q "another allocator" || { echo "rival"; fail=1; }
TIERMALLOC_GIVEBACK=12 "$tool" doctor | grep -q "bad value '12'" || { echo "bad value"; fail=1; }

LD_PRELOAD=$TM_LIB sleep 100 &
with=$!
sleep 100 &
without=$!
until grep -q "$TM_LIB" "/proc/$with/maps" && [ "$(cat "/proc/$without/comm")" = sleep ]; do :; done
"$tool" doctor $with >out || { echo "status with the library"; cat out; fail=1; }
grep -q "^ok .*process: has the library ('$TM_LIB')" out || { cat out; fail=1; }
"$tool" doctor $without >out && { echo "status without the library"; fail=1; }
grep -q "^problem .*does not have the library" out || { cat out; fail=1; }
kill $with $without
"$tool" doctor 999999999 2>/dev/null
[ $? = 2 ] || { echo "no such process"; fail=1; }
"$tool" doctor --nonsense 2>/dev/null
[ $? = 2 ] || { echo "unknown option"; fail=1; }
exit $fail
