#!/bin/sh
# SPDX-License-Identifier: MIT
# needs: mandoc
# Every page is clean mdoc.
set -eu
pages=$(find "$TM_SRC/man" -name '*.[1357]')
[ -n "$pages" ] || {
	echo "no page found in man/"
	exit 1
}
# shellcheck disable=SC2086
mandoc -T lint -W warning $pages
