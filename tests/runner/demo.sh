#!/bin/sh
# SPDX-License-Identifier: MIT
# The demo's part that needs no network: both planted leaks are found while the load runs, the
# fragmentation report and the classes beside the tiers are shown, the page is written last.
[ -e "$TM_LIB" ] || {
	echo "the library is not built"
	exit 77
}
TM_PREFIX= python3 "$TM_SRC/tests/demo/demo" --made -s 40 >out 2>err || {
	cat out err
	exit 1
}
failed=0
for text in 'both are found' '#1 GROWING .*' 'VERDICT .*unreachable.*' 'VERDICT .*held for.*' 'session .*' \
	'All of it with pictures: .*html'; do
	grep -q "$text" out || {
		echo "not shown: $text"
		failed=1
	}
done
[ "$(wc -l <out)" -le 50 ] || failed=1
[ -s "$(sed -n 's/^All of it with pictures: //p' out)" ] || failed=1
[ $failed -eq 0 ] || cat out err
exit $failed
