#!/bin/sh
# SPDX-License-Identifier: MIT
# H10, H23, H27: whoever believes that the library is on, is told when it is not.
fail=0
tool=$TM_BUILD/tiermalloc
cc=${CC:-cc}
has() { # NAME PATTERN TEXT
	case $3 in
	*"$2"*) ;;
	*) echo "$1: '$2' is not in '$3'"; fail=1 ;;
	esac
}
echo 'int main(void) { return 3; }' >main.c
if $cc -static main.c -o static 2>/dev/null; then
	out=$("$tool" run -- ./static 2>&1)
	has "status of a static program" 3 "$?"
	has "static" "is statically linked" "$out"
	"$tool" doctor ./static >out && { echo "doctor finds no problem in a static program"; fail=1; }
	has "doctor on static" "problem  program:" "$(cat out)"
fi
cat >own.c <<'END'
#include <stddef.h>
static char space[1 << 20];
static size_t used;
void *malloc(size_t n) { void *p = space + used; used += (n + 15) & ~(size_t)15; return p; }
void free(void *p) { (void)p; }
int main(void) { return malloc(1) == NULL; }
END
$cc -fno-builtin -rdynamic own.c -o own || exit 77
has "own malloc" "exports its own malloc" "$("$tool" doctor ./own)"
has "own malloc, incomplete" "exports malloc without calloc" "$("$tool" doctor ./own)"
if $cc -fsanitize=address main.c -o asan 2>/dev/null; then
	has "sanitizer" "AddressSanitizer" "$("$tool" doctor ./asan)"
	has "sanitizer under run" "the library has no effect" "$("$tool" run -- ./asan 2>&1)"
fi
# A file that says it is 32-bit, and one for musl.
$cc main.c -o plain
{ head -c 4 plain; printf '\001'; tail -c +6 plain; } >class32
chmod +x class32
has "class" "another class or machine" "$("$tool" doctor ./class32)"
interp=$(readelf -lW plain | sed -n 's/.*interpreter: \(.*\)\]/\1/p')
if [ ${#interp} -gt 20 ]; then
	sed "s|$interp|/lib/ld-musl-x86_64.so.1\\x00|" plain >musl 2>/dev/null && chmod +x musl
	has "musl" "musl" "$("$tool" doctor ./musl)"
fi
if [ "$(id -u)" = 0 ] && cp plain setuid && chown 65534 setuid && chmod u+s setuid; then
	has "set-user-ID" "set-user-ID" "$("$tool" doctor ./setuid)"
fi
# A script is looked through.
printf '#!/usr/bin/env sh\nexit 0\n' >script
chmod +x script
has "script" "is run by" "$("$tool" doctor ./script)"
# What is not there.
"$tool" doctor ./nothing 2>/dev/null
has "status for what is not there" 2 "$?"
exit $fail
