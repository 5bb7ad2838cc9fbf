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
check "the command is the library's" 1 "$("$tool" run -- sh -c 'grep -m 1 -c "r-x.*/libtiermalloc.so" /proc/self/maps')"

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

# Relative paths mean the folder that "run" was started in, also in processes that are elsewhere.
here=$(pwd -P)
mkdir -p "50%full"
echo 'size>=1M -> tier=temporary' >some.rules
check "rules" "$here/some.rules" "$("$tool" run --rules some.rules -- sh -c 'echo "$TIERMALLOC_RULES"')"
check "rules in the environment" "$here/some.rules" \
	"$(TIERMALLOC_RULES=some.rules "$tool" run -- sh -c 'echo "$TIERMALLOC_RULES"')"
check "rules of TIERMALLOC_CONF" "$here/some.rules" \
	"$(TIERMALLOC_CONF=rules=some.rules "$tool" run -- sh -c 'echo "$TIERMALLOC_RULES"')"
check "profile" "$here/some.rules" "$("$tool" run --profile some.rules -- sh -c 'echo "$TIERMALLOC_PROFILE"')"
check "read elsewhere" "" "$("$tool" run --rules some.rules -- sh -c 'cd /; true; sh -c :' 2>&1)"
check "inline rules" "size>=1M -> tier=temporary" \
	"$("$tool" run --rules 'size>=1M -> tier=temporary' -- sh -c 'echo "$TIERMALLOC_RULES"')"
check "dir" "$here/ledgers" "$("$tool" run --dir ledgers -- sh -c 'echo "$TIERMALLOC_DIR"')"
check "dir that is absolute" "$here" "$("$tool" run --dir "$here" -- sh -c 'echo "$TIERMALLOC_DIR"' 2>/dev/null)"
check "report" "$here/50%%full/%p" \
	"$(cd "50%full" && TIERMALLOC_REPORT_FILE=%p "$tool" run -- sh -c 'echo "$TIERMALLOC_REPORT_FILE"')"
check "no rules" "none" "$("$tool" run -- sh -c 'echo "${TIERMALLOC_RULES-none}"')"
check "missing rules" 2 "$("$tool" run --rules none.rules -- true 2>/dev/null; echo $?)"

# Troubles.
check "not found" 1 "$("$tool" run -- ./nothing 2>/dev/null; echo $?)"
check "not found, line" "tiermalloc: run: './nothing' cannot be started: No such file or directory" \
	"$("$tool" run -- ./nothing 2>&1)"
check "no command" 2 "$("$tool" run 2>/dev/null; echo $?)"
check "unknown option" 2 "$("$tool" run --nonsense true 2>/dev/null; echo $?)"
check "missing value" 2 "$("$tool" run --report 2>/dev/null; echo $?)"
check "bad value" 2 "$("$tool" run --report much -- true 2>/dev/null; echo $?)"
exit $fail
