#!/bin/bash
# SPDX-License-Identifier: MIT
# H29 H30: the library exports every name of shim/base/symbols.def, functions of libc that it
# wraps, and tiermalloc_*, and nothing else; in particular nothing named tm_*. Failure: a missing
# name sends blocks to a strange free, a stray one clashes with the program.
# needs: nm
set -u
[ -r "$TM_LIB" ] || { echo "no library"; exit 77; }
fail=0
exported=$(nm -D --defined-only "$TM_LIB" | awk '{ print $3 }' | sed 's/@.*//' | sort -u)
wanted=$(sed -n 's/^S(\([A-Za-z_0-9]*\),.*/\1/p' "$TM_SRC/shim/base/symbols.def" | sort -u)
[ "$(wc -l <<<"$wanted")" -ge 50 ] || { echo "symbols.def could not be read"; exit 1; }
missing=$(comm -13 <(echo "$exported") <(echo "$wanted"))
[ -z "$missing" ] || { echo "missing:" $missing; fail=1; }
must="malloc free calloc realloc reallocarray memalign aligned_alloc posix_memalign valloc pvalloc cfree
	malloc_usable_size malloc_trim mallopt mallinfo mallinfo2 malloc_info malloc_stats free_sized
	free_aligned_sized __libc_malloc __libc_free __libc_calloc __libc_realloc __libc_memalign
	__libc_valloc __libc_pvalloc _Znwm _Znam _ZdlPv _ZdaPv _ZdlPvm _ZdaPvmSt11align_val_t dlsym dlopen"
for name in $must; do
	grep -qx "$name" <<<"$exported" || { echo "missing: $name"; fail=1; }
done
for name in $(comm -23 <(echo "$exported") <(echo "$wanted")); do
	case $name in
	tiermalloc_*) ;;
	tm_*|TM_*) echo "internal name exported: $name"; fail=1 ;;
	*) # a wrapper must wrap something: the name exists in libc, libcuda or libcudart
		grep -qE "^(cu[A-Z]|cuda[A-Z]|__libc_start_main$)" <<<"$name" ||
			nm -D "$(ldconfig -p | awk '/libc\.so\.6.*x86-64|libc\.so\.6/ { print $NF; exit }')" |
			awk '{ print $3 }' | sed 's/@.*//' | grep -qx "$name" ||
			{ echo "exports a name that nobody else has: $name"; fail=1; } ;;
	esac
done
exit $fail
