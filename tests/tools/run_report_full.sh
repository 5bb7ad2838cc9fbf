#!/bin/sh
# SPDX-License-Identifier: MIT
# 'run --report full' prints the account of the command and of large children, on standard error alone.
# The shell is bash, because dash ends by _exit, which no exit handler sees.
fail=0
tool=$TM_BUILD/tiermalloc
out=$("$tool" run --report full -- bash -c 'echo text; exit 4' 2>report)
[ $? = 4 ] || { echo "status"; fail=1; }
[ "$out" = text ] || { echo "stdout: '$out'"; fail=1; }
for word in "report of process" "total" "RSS" "peak RSS"; do
	grep -q "$word" report || { echo "'$word' is not in the report"; fail=1; }
done
# 40 MiB in a child of a child, among small ones.
"$tool" run --report full -- sh -c \
	'true; /bin/true; sh -c "true; python3 -c \"x = bytearray(40 << 20)\"; true"; true' 2>report
grep -q "report of process .*python" report || { echo "the large child is missing"; cat report; fail=1; }
grep -q "smaller processes are not shown" report || { echo "the small ones are not counted"; fail=1; }
# No account: said, not invented.
"$tool" run --report full -- sh -c 'kill -9 $$' 2>report
grep -q "no report, the command was ended by signal 9" report || { echo "killed"; cat report; fail=1; }
# A file of the user's own choice.
TIERMALLOC_REPORT_FILE=$(pwd)/mine.%p "$tool" run --report full -- /bin/true 2>report
[ -s report ] && { echo "printed although a file was chosen"; fail=1; }
ls mine.* >/dev/null 2>&1 || { echo "no file of the chosen name"; fail=1; }
# Nothing is left in TMPDIR.
ls -d tiermalloc-* >/dev/null 2>&1 && { echo "a folder is left behind"; fail=1; }
exit $fail
