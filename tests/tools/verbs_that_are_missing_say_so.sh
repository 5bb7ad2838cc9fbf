#!/bin/sh
# SPDX-License-Identifier: MIT
# A verb of a later release: one honest line, status 2, and --help does not list it.
fail=0
tool=$TM_BUILD/tiermalloc
"$tool" --help >help || { echo "help fails"; fail=1; }
[ "$("$tool" --version)" = "tiermalloc $(sed -n 's/^#define PACKAGE_VERSION "\(.*\)"/\1/p' "$TM_BUILD/config.h")" ] ||
	{ echo "version"; fail=1; }
for verb in report leaks frag explain ack top diff ls gc merge tune trace replay export serve symbols; do
	grep -q "tiermalloc $verb " help && continue
	"$tool" $verb 1 >out 2>err
	[ $? = 2 ] || { echo "$verb: status"; fail=1; }
	[ -s out ] && { echo "$verb: prints on stdout"; fail=1; }
	[ "$(cat err)" = "tiermalloc: the command '$verb' is not in this release" ] || { cat err; fail=1; }
done
"$tool" nonsense 2>err
[ $? = 2 ] && grep -q "unknown command 'nonsense'" err || { echo "unknown command"; fail=1; }
"$tool" 2>/dev/null
[ $? = 2 ] || { echo "no command"; fail=1; }
"$tool" config >/dev/full 2>err
[ $? = 1 ] && grep -q "cannot be written" err || { echo "full output"; fail=1; }
exit $fail
