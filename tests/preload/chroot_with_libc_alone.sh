#!/bin/bash
# SPDX-License-Identifier: MIT
# H07: in a root directory that holds libc, the loader, us and one program, nothing else, not even
# /proc and /dev, the program runs under us. Failure: a missing NEEDED is fatal for every child.
set -u
[ -r "$TM_LIB" ] || { echo "no library"; exit 77; }
[ "$(id -u)" = 0 ] && enter=(chroot) || enter=(unshare -r chroot)
root=$TMPDIR/root
mkdir -p "$root"
"${enter[@]}" / true 2>/dev/null || { echo "chroot is not allowed"; exit 77; }
for f in $(ldd "$TM_TESTS/static_tls_is_left_for_others" | grep -o '/[^ ]*'); do
	mkdir -p "$root$(dirname "$f")"
	cp -L "$f" "$root$f"
done
cp "$TM_LIB" "$TM_TESTS/every_size_is_16_aligned" "$TM_TESTS/realloc_keeps_content" "$TM_TESTS/free_keeps_errno" "$root"
name=/$(basename "$TM_LIB")
for program in every_size_is_16_aligned realloc_keeps_content free_keeps_errno; do
	said=$(LD_PRELOAD= "${enter[@]}" "$root" "/$program" 2>&1) || { echo "plain: $said"; exit 1; }
done
loader=$(cd "$root" && find . -name 'ld-linux*' | head -1 | sed 's/^\.//')
for program in every_size_is_16_aligned realloc_keeps_content free_keeps_errno; do
	said=$("${enter[@]}" "$root" "$loader" --preload "$name" "/$program" 2>&1) ||
		{ echo "$program: status $?: $said"; exit 1; }
	[ -z "$said" ] || { echo "$program said: $said"; exit 1; }
done
