#!/bin/sh
# SPDX-License-Identifier: MIT
# timeout: 3600
# The tarball is complete: it builds out of a read-only tree, passes its tests and installs all of
# interface: library, commands, header, pkg-config file, pages.
. "$TM_SRC/tests/builds/common.sh"
here=$PWD
configure_here
make -s dist >/dev/null
cd "$here"
tar -xf b/tiermalloc-*.tar.xz
src=$(echo "$here"/tiermalloc-*)
chmod -R a-w "$src"
trap 'chmod -R u+w "$src"' EXIT
mkdir out
cd out
"$src/configure" -q --prefix="$here/prefix" >configure.log 2>&1 || {
	cat configure.log
	exit 1
}
make -s -j"$jobs" check TM_SUITES="lint/elf lint/symbols lint/layers unit preload/loads"
make -s install >/dev/null
for f in lib/libtiermalloc.so bin/tiermalloc bin/yi-coder-run include/tiermalloc.h \
	lib/pkgconfig/tiermalloc.pc share/man/man1/tiermalloc.1 share/man/man1/yi-coder-run.1 \
	share/man/man3/tiermalloc.3 share/man/man5/tiermalloc-rules.5 \
	share/man/man5/tiermalloc-tunables.5 share/man/man7/tiermalloc.7; do
	[ -e "$here/prefix/$f" ] || {
		echo "not installed: $f"
		exit 1
	}
done
PKG_CONFIG_PATH=$here/prefix/lib/pkgconfig pkg-config --exists tiermalloc
LD_PRELOAD=$here/prefix/lib/libtiermalloc.so "$here/prefix/bin/tiermalloc" --version
make -s uninstall >/dev/null
left=$(find "$here/prefix" -type f)
[ -z "$left" ] || {
	echo "left after uninstall: $left"
	exit 1
}
