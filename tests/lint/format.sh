#!/bin/sh
# SPDX-License-Identifier: MIT
# .clang-format is law. format.sh --fix [FILE...] applies it.
# Another version of the tool breaks lines elsewhere, so only the one of Debian 12 is asked.
set -eu
src=${TM_SRC:-$(cd "$(dirname "$0")/../.." && pwd)}
cd "$src"
tool=$(command -v clang-format-14 || command -v clang-format || :)
case $([ -n "$tool" ] && "$tool" --version) in
*'version 14.'*) ;;
*)
	echo "clang-format 14 is not installed"
	exit 77
	;;
esac
if [ "${1:-}" = --fix ]; then
	shift
	if [ $# -gt 0 ]; then
		exec "$tool" -i "$@"
	fi
	fix=-i
fi
out=$(python3 -B -c '
import sys
sys.path.insert(0, "tests/lint")
from common import GIVEN, files
print("\n".join(f for f in files(".c", ".h", ".cpp") if not f.startswith(GIVEN)))' |
	grep -v '^tools/runner/unicode_runs\.h$' | tr '\n' '\0' |
	xargs -0 "$tool" ${fix:---dry-run -Werror} 2>&1) || {
	echo "$out" | sed -n 's/^\([^ :]*\):\([0-9]*\):.*error:.*/\1 \2/p' | sort -u | cut -d ' ' -f 1 |
		uniq -c | awk '{ print $2 ": " $1 " lines" }'
	echo "to apply it: tests/lint/format.sh --fix"
	exit 1
}
