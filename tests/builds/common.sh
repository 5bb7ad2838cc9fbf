# SPDX-License-Identifier: MIT
# Sourced by the scripts here: each builds the tree another way, out of tree, in its own directory.
set -eu
jobs=$(nproc 2>/dev/null || echo 2)

# configure_here ARGS...: configure in ./b and stand there
configure_here() {
	mkdir -p b
	cd b
	"$TM_SRC/configure" -q "$@" >configure.log 2>&1 || {
		cat configure.log
		exit 1
	}
}

# run_suites SUITE...: what tests/run says of this build but for what passed, so that a failure isn't lost
# among hundreds of lines; ends the script with its status
run_suites() {
	status=0
	TM_BUILD=$PWD "$TM_SRC/tests/run" "$@" >suites.log 2>&1 || status=$?
	grep -v '^ok ' suites.log || :
	exit $status
}
