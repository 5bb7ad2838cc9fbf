#!/bin/bash
# SPDX-License-Identifier: MIT
# What ./quickstart says where it cannot or need not do anything.
. "$TM_SRC/tests/builds/common.sh"
fail() {
	echo "$*"
	cat log
	exit 1
}

"$TM_SRC/quickstart" nonsense >log 2>&1 && fail "an unknown verb is accepted"
grep -q '^usage:' log || fail "an unknown verb shows no usage"

# A second 'deps' does nothing; where packages are missing this test has nothing to say.
mkdir bin
cat >bin/apt-get <<'END'
#!/bin/sh
echo "apt-get was called: $*" >&2
exit 1
END
chmod +x bin/apt-get
PATH=$PWD/bin:$PATH "$TM_SRC/quickstart" deps >log 2>&1 || fail "deps wants to install what is there"
grep -q 'apt-get was called' log && fail "deps called apt-get although nothing is missing"

# Without apt-get: name what is missing, exit 1. Only what the script itself needs is in reach.
mkdir few
for tool in bash env dirname id cat nproc; do ln -s "$(command -v $tool)" few/; done
status=0
PATH=$PWD/few bash "$TM_SRC/quickstart" deps >log 2>&1 || status=$?
[ $status -eq 1 ] || fail "deps without apt-get ends with $status"
grep -q 'autoconf' log || fail "deps without apt-get does not name what is missing"
