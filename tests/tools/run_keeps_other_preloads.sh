#!/bin/sh
# SPDX-License-Identifier: MIT
# LD_PRELOAD: ours first, the others kept, no second copy, blanks and colons alike (H10, H50).
fail=0
check() {
	[ "$2" = "$3" ] || { echo "$1: wanted '$2', got '$3'"; fail=1; }
}
tool=$TM_BUILD/tiermalloc
cc=${CC:-cc}
for n in one two; do
	echo "int probe_$n;" | $cc -shared -fPIC -x c - -o lib$n.so || exit 77
done
here=$(pwd)
show='echo "$LD_PRELOAD"'
check "colon" "$TM_LIB:$here/libone.so:$here/libtwo.so" \
	"$(LD_PRELOAD="$here/libone.so:$here/libtwo.so" "$tool" run -- sh -c "$show")"
check "blank" "$TM_LIB:$here/libone.so:$here/libtwo.so" \
	"$(LD_PRELOAD="$here/libone.so $here/libtwo.so" "$tool" run -- sh -c "$show")"
check "once" "$TM_LIB:$here/libone.so" \
	"$(LD_PRELOAD="/old/libtiermalloc.so:$here/libone.so" "$tool" run -- sh -c "$show" 2>/dev/null)"
check "nested" "$TM_LIB" "$("$tool" run -- "$tool" run -- sh -c "$show")"

# A library that cannot be preloaded is refused before anything runs.
for odd in 'with blank' 'with:colon' 'with$dollar'; do
	mkdir -p "$odd"
	cp "$tool" "$odd/tiermalloc"
	cp "$TM_LIB" "$odd/"
	check "path '$odd'" 1 "$("$odd/tiermalloc" run -- true 2>/dev/null; echo $?)"
done
mkdir -p alone broken
cp "$tool" alone/tiermalloc
check "no library" 1 "$(alone/tiermalloc run -- true 2>/dev/null; echo $?)"
cp "$tool" broken/tiermalloc
echo nonsense >broken/libtiermalloc.so
check "no ELF" "tiermalloc: run: '$here/broken/libtiermalloc.so' cannot be preloaded: it is no library" \
	"$(broken/tiermalloc run -- true 2>&1)"
# Another class: byte 4 of the file says so.
{ head -c 4 "$TM_LIB"; printf '\001'; tail -c +6 "$TM_LIB"; } >broken/libtiermalloc.so
check "wrong class" "tiermalloc: run: '$here/broken/libtiermalloc.so' cannot be preloaded: it is for another machine" \
	"$(broken/tiermalloc run -- true 2>&1)"
exit $fail
