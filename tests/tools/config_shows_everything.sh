#!/bin/sh
# SPDX-License-Identifier: MIT
# 'config': one line for every variable with name, value, default, source, meaning; complaints on stderr.
fail=0
tool=$TM_BUILD/tiermalloc
"$tool" config >out 2>err || { echo "status"; fail=1; }
[ -s err ] && { echo "complains about nothing:"; cat err; fail=1; }
wanted=$(grep -c '^T(' "$TM_SRC/shim/base/tunables.def")
[ "$(grep -c '^TIERMALLOC' out)" = "$wanted" ] || { echo "not all $wanted variables are shown"; fail=1; }
awk 'NR > 1 && (NF < 5 || $2 != $3 || $4 != "default") { print "odd line: " $0; bad = 1 } END { exit bad }' out || fail=1
line() { grep "^$1 " out | tr -s ' '; }
TIERMALLOC_LOG=quiet TIERMALLOC_CONF=giveback=eager:log=info "$tool" config >out 2>err
case $(line TIERMALLOC_LOG) in "TIERMALLOC_LOG quiet warn environment "*) ;; *) line TIERMALLOC_LOG; fail=1 ;; esac
case $(line TIERMALLOC_GIVEBACK) in "TIERMALLOC_GIVEBACK eager auto TIERMALLOC_CONF "*) ;; *) line TIERMALLOC_GIVEBACK; fail=1 ;; esac
TIERMALLOC_GIVEBACK=12 "$tool" config >out 2>err || { echo "a bad value ends config"; fail=1; }
[ "$(cat err)" = "tiermalloc: bad value '12' of TIERMALLOC_GIVEBACK, use auto, off or eager" ] || { cat err; fail=1; }
case $(line TIERMALLOC_GIVEBACK) in "TIERMALLOC_GIVEBACK auto auto default "*) ;; *) line TIERMALLOC_GIVEBACK; fail=1 ;; esac
# The library says the very same line, once, and the program runs on.
out=$(TIERMALLOC_GIVEBACK=12 LD_PRELOAD=$TM_LIB /bin/echo on 2>liberr)
[ "$out" = on ] && cmp -s err liberr || { echo "the library says otherwise:"; cat liberr; fail=1; }
"$tool" config --man | cmp -s - "$TM_SRC/man/tiermalloc-tunables.5" || { echo "the page differs"; fail=1; }
"$tool" config --nonsense 2>/dev/null
[ $? = 2 ] || { echo "unknown argument"; fail=1; }
exit $fail
