#!/bin/sh
# SPDX-License-Identifier: MIT
# timeout: 3600
# Files of requests for serve-load, changed at random: 10 s, in soak 15 minutes.
R=$TM_SRC/tools/runner
. "$TM_SRC/tests/fuzz/runner/build.sh"
fuzz_build requests "$R"/request.c "$R"/json.c
cat >1 <<'X'
{"prompt": "Hello \u00e9\ud83d\ude00\n", "n": 12, "session": "a"}
{"tokens": [1, 2, 999], "arrive_ms": 1.5e2, "prefix": "a"}
X
cat >2 <<'X'
{"prompt":"a","session":"x"}
 { "prompt" : "b" , "prefix" : "x" , "n" : 1 }

{"tokens":[0],"session":"x"}
{"prompt":"\"\\\/\b\f\n\r\t","prefix":"x"}
X
./requests "$FUZZ_S" 1 2
