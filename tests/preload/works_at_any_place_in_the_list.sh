#!/bin/bash
# SPDX-License-Identifier: MIT
# H85, H09: three libraries in LD_PRELOAD, ours first, in the middle and last, separated by colons
# or blanks, with a library between that wraps madvise and one whose fork handlers allocate: the
# program's result and its LD_PRELOAD are unchanged. An entry that does not exist costs the loader's
# line only.
# Failure: a crash, a hang, or a list rewritten by us.
set -u
cd "$TMPDIR" || exit 1
a=$TM_TESTS/libatfork_allocates.so b=$TM_TESTS/libwatch_release.so
[ -e "$a" ] && [ -e "$b" ] || { echo "skipped: helper libraries are not built"; exit 77; }
bad=0
script='x=$(for i in 1 2 3; do echo $i; done | sort -r | tr "\n" " "); echo "$x $LD_PRELOAD"'
for list in "$TM_LIB:$a:$b" "$a:$TM_LIB:$b" "$a:$b:$TM_LIB" "$b $TM_LIB $a" "$TM_LIB:$TM_LIB:$a" \
	"$a:/nowhere/lib.so:$TM_LIB"; do
	out=$(LD_PRELOAD=$list bash -c "$script" 2>err)
	status=$?
	if [ $status != 0 ] || [ "$out" != "3 2 1  $list" ]; then
		echo "LD_PRELOAD=$list: status $status, '$out'"; cat err; bad=1
	fi
	if grep -v '^ERROR: ld.so: object .* ignored\.$' err | grep -q .; then
		echo "LD_PRELOAD=$list: stderr:"; cat err; bad=1
	fi
done
exit $bad
