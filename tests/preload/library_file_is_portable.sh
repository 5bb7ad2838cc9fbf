#!/bin/bash
# SPDX-License-Identifier: MIT
# H06 H07 H08 H11 H24 H25, log 10 12 73, on the file itself: it needs libc (and the loader) only,
# no symbol newer than glibc 2.28 and none of GLIBC_PRIVATE, takes at most 64 bytes of static
# thread-local memory, can be neither opened late nor unloaded, has no indirect functions (their
# resolvers run before relocation), no instruction beyond the baseline, no version node of its own,
# and names versions that musl lacks, so that a musl loader refuses it instead of running it.
# needs: readelf objdump nm
set -u
[ -r "$TM_LIB" ] || { echo "no library"; exit 77; }
fail=0
wrong() { echo "$*"; fail=1; }

needed=$(readelf -dW "$TM_LIB" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v '^libc\.so\.6$' | grep -v '^ld-linux')
[ -z "$needed" ] || wrong "needs $needed"

versions=$(objdump -T "$TM_LIB" | grep -o 'GLIBC_[0-9A-Z.]*' | sort -u)
[ -n "$versions" ] || wrong "names no version of glibc: musl would load it"
for v in $versions; do
	case $v in
	GLIBC_PRIVATE) wrong "uses GLIBC_PRIVATE" ;;
	*) [ "$(printf '2.28\n%s\n' "${v#GLIBC_}" | sort -V | tail -1)" = 2.28 ] || wrong "needs $v" ;;
	esac
done

tls=$(($(readelf -lW "$TM_LIB" | awk '$1 == "TLS" { print $6 }') + 0))
[ "$tls" -le 64 ] || wrong "$tls bytes of thread-local memory"

flags=$(readelf -dW "$TM_LIB" | grep -E 'FLAGS')
for f in NOW NODELETE NOOPEN; do
	case $flags in *"$f"*) ;; *) wrong "flag $f is missing" ;; esac
done
case $flags in *TEXTREL*) wrong "relocations in the text" ;; esac
readelf -lW "$TM_LIB" | grep 'GNU_STACK' | grep -q 'RWE' && wrong "executable stack"
readelf -rW "$TM_LIB" | grep -q 'IRELATIV' && wrong "indirect functions"
nm -D --defined-only "$TM_LIB" | grep -q ' [iI] ' && wrong "exports an indirect function"
defined_versions=$(readelf -VW "$TM_LIB" | grep -c "Version definition")
[ "$defined_versions" = 0 ] || wrong "defines a version node"

if [ "$(uname -m)" = x86_64 ]; then
	beyond=$(objdump -d --no-show-raw-insn "$TM_LIB" |
		grep -E '%[yz]mm[0-9]|	(v[a-z]+ps|v[a-z]+pd|vmov|vp[a-z]+|pext|pdep|bzhi|sarx|shlx|shrx|rorx|mulx|andn|blsr|blsi|lzcnt|popcnt) ' |
		head -3)
	[ -z "$beyond" ] || wrong "beyond the baseline: $beyond"
fi
exit $fail
