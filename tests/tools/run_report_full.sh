#!/bin/sh
# SPDX-License-Identifier: MIT
# 'run --report' reports the command and its large children, on standard error alone, by whatever end.
fail=0
tool=$TM_BUILD/tiermalloc
out=$("$tool" run --report full -- bash -c 'echo text; exit 4' 2>report)
[ $? = 4 ] || { echo "status"; fail=1; }
[ "$out" = text ] || { echo "stdout: '$out'"; fail=1; }
for word in "^VERDICT " "full report  bash pid" "^balance of" "^  residual "; do
	grep -q "$word" report || { echo "'$word' is not in the report"; fail=1; }
done
# 40 MiB in a child of a child, among small ones.
"$tool" run --report full -- sh -c \
	'true; /bin/true; sh -c "true; python3 -c \"import time; x = bytearray(40 << 20); time.sleep(.3)\"; true"; true' 2>report
grep -q "full report  python" report || { echo "the large child is missing"; cat report; fail=1; }
grep -q "smaller processes are not shown" report || { echo "the small ones are not counted"; fail=1; }
# Killed: reported all the same.
"$tool" run --report leak -- sh -c 'kill -9 $$' 2>report
grep -q "leak report  .*killed (no mark of a clean exit)" report || { echo "killed"; cat report; fail=1; }
# Files, and conditions: 3 only where the command itself ended well.
"$tool" run --json doc.json --html page.html --fail-on 'live>1' -- python3 -c 'x = 1' 2>report
[ $? = 3 ] || { echo "a condition that holds"; cat report; fail=1; }
grep -q "'live>1' holds" report || { echo "what holds is not said"; fail=1; }
[ "$(python3 -c 'import json; print(json.load(open("doc.json"))["schema"])')" = tiermalloc.report/1 ] || { echo json; fail=1; }
grep -qi '<!doctype html' page.html || { echo html; fail=1; }
"$tool" run --fail-on 'live>1' -- python3 -c 'raise SystemExit(5)' 2>report
[ $? = 5 ] || { echo "the command's own status"; fail=1; }
"$tool" run --fail-on 'live>1T,growth>1MiB/h' -- python3 -c 'x = 1' 2>report || { echo "holds not"; fail=1; }
"$tool" run --fail-on 'size>1' -- true 2>report
[ $? = 2 ] || { echo "a bad condition"; fail=1; }
# A file of the user's own choice.
TIERMALLOC_REPORT_FILE=$(pwd)/mine.%p "$tool" run --report full -- /bin/true 2>report
[ -s report ] && { echo "printed although a file was chosen"; fail=1; }
ls mine.* >/dev/null 2>&1 || { echo "no file of the chosen name"; fail=1; }
# Nothing is left.
ls -d tiermalloc-* /dev/shm/tiermalloc-?????? >/dev/null 2>&1 && { echo "a folder is left behind"; fail=1; }
exit $fail
