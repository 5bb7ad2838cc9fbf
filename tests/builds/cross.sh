#!/bin/bash
# SPDX-License-Identifier: MIT
# needs: aarch64-linux-gnu-gcc qemu-aarch64
# timeout: 3600
# 64-bit Arm: everything compiles, and programs run with the library preloaded under qemu.
. "$TM_SRC/tests/builds/common.sh"
# The libraries of the machine that builds are none of the one it builds for.
export PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig
configure_here --host=aarch64-linux-gnu CXX=aarch64-linux-gnu-g++ --enable-werror \
	--with-criterion=no --with-libunwind=no --with-libdw=no
# Two calls: "all" is a make of its own, which would build the archives beside this one.
make -s -j"$jobs" all
make -s -j"$jobs" tests/unit/unit

# The programs are those whose first lines ask for it.
mapfile -t programs < <(cd "$TM_SRC" && grep -lE '^/\* cross: yes \*/' tests/preload/*.c)
[ ${#programs[@]} -gt 0 ] || {
	echo "no program in tests/preload says 'cross: yes'"
	exit 1
}
passed=0 failed=0 skipped=0
status=0
export TM_EMULATED=1
qemu-aarch64 -L /usr/aarch64-linux-gnu tests/unit/unit >log 2>&1 || status=$?
tail -n 1 log
if [ $status -eq 0 ]; then
	passed=1
else
	failed=1
	cat log
fi
for source in "${programs[@]}"; do
	program=${source%.c}
	make -s "$program"
	status=0
	qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_PRELOAD="$PWD/libtiermalloc.so" \
		"$PWD/$program" >log 2>&1 || status=$?
	case $status in
	0) passed=$((passed + 1)) ;;
	77) skipped=$((skipped + 1)) ;;
	*)
		failed=$((failed + 1))
		echo "$program: status $status"
		cat log
		;;
	esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
