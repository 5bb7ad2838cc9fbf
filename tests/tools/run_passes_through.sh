#!/bin/sh
# SPDX-License-Identifier: MIT
# 'tiermalloc run' is invisible: streams, status, signals, environment; and the library is really there.
fail=0
check() { # NAME WANTED GOT
	[ "$2" = "$3" ] || { echo "$1: wanted '$2', got '$3'"; fail=1; }
}
tool=$TM_BUILD/tiermalloc

check "status" 7 "$("$tool" run -- sh -c 'exit 7'; echo $?)"
check "stdout" "a b" "$("$tool" run -- echo a b 2>/dev/null)"
check "stderr" "" "$("$tool" run -- true 2>&1)"
check "stdin" "x" "$(echo x | "$tool" run -- cat)"
check "options of the command" "-n --report" "$("$tool" run printf '%s %s' -n --report)"
check "the command is the library's" 1 "$("$tool" run -- sh -c 'grep -c "r-x.*/libtiermalloc.so" /proc/self/maps')"

# Signals: by number for the shell, and those sent to us reach the command.
check "killed" 137 "$("$tool" run -- sh -c 'kill -9 $$' 2>/dev/null; echo $?)"
check "aborted" 134 "$( (ulimit -c 0; "$tool" run -- sh -c 'kill -ABRT $$') 2>/dev/null; echo $?)"
cat >signalled.sh <<'END'
trap 'echo got; exit 5' TERM
echo ready >ready
while :; do sleep 0.05; done
END
"$tool" run -- sh signalled.sh >out &
pid=$!
until [ -e ready ]; do sleep 0.05; done
kill -TERM $pid
wait $pid
check "status after a signal" 5 "$?"
check "signal" "got" "$(cat out)"

# What was ignored stays ignored, as with nohup.
check "ignored" "alive" "$( (trap '' HUP; "$tool" run -- sh -c 'kill -HUP $$; echo alive'))"

# Environment.
check "preload" "$TM_LIB" "$("$tool" run -- sh -c 'echo "$LD_PRELOAD"')"
check "python" "malloc" "$("$tool" run --python -- sh -c 'echo "$PYTHONMALLOC"')"
check "observe" "observe" "$("$tool" run --observe -- sh -c 'echo "$TIERMALLOC"')"
check "report" "none" "$("$tool" run -- sh -c 'echo "${TIERMALLOC_REPORT-none}"')"

# Troubles.
check "not found" 1 "$("$tool" run -- ./nothing 2>/dev/null; echo $?)"
check "not found, line" "tiermalloc: run: './nothing' cannot be started: No such file or directory" \
	"$("$tool" run -- ./nothing 2>&1)"
check "no command" 2 "$("$tool" run 2>/dev/null; echo $?)"
check "unknown option" 2 "$("$tool" run --nonsense true 2>/dev/null; echo $?)"
check "missing value" 2 "$("$tool" run --report 2>/dev/null; echo $?)"
check "bad value" 2 "$("$tool" run --report much -- true 2>/dev/null; echo $?)"
exit $fail
