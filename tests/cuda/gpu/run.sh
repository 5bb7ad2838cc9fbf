#!/bin/bash
# SPDX-License-Identifier: MIT
# The checks on a machine with a GPU: steps H0 to H14, each under a limit of its own, at most 10 minutes
# together, one line of JSON per result on stdout, a line per step on stderr.
#
#   tests/cuda/gpu/run.sh [-l LIBRARY] [-o FILE] [STEP...]
#
# LIBRARY is libtiermalloc.so (default: ./libtiermalloc.so, then the build tree above the sources).
# TM_GPU_DRIVER names another libcuda.so.1 and TM_GPU_RUNTIMES other runtimes: the rehearsal on the fake
# ones (tests/cuda/gpu_script_runs_on_the_fake.sh), with TM_GPU_QUICK=1. Needs a C compiler; Python with
# torch, cupy, numba or jax where they are to be looked at. Fetches nothing.
# Exit status: 0 every line ok or a fact, 1 some were false, 2 it could not start.
set -u
src=$(cd "$(dirname "$0")/../../.." && pwd)
lib= out=
while getopts l:o: opt; do
	case $opt in
	l) lib=$OPTARG ;;
	o) out=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
steps=" ${*:-H0 H1 H3 H4 H5 H2 H6 H7 H8 H13 H14 H9 H10 H11 H12} "
for l in ./libtiermalloc.so "$src/build/libtiermalloc.so" "$src/build/prefix/lib/libtiermalloc.so"; do
	[ -n "$lib" ] || [ ! -e "$l" ] || lib=$l
done
[ -e "$lib" ] || { echo "run.sh: no libtiermalloc.so, name it with -l" >&2; exit 2; }
lib=$(realpath "$lib")
driver=${TM_GPU_DRIVER:-$(ldconfig -p | sed -n 's/.*libcuda\.so\.1 .*=> //p' | head -1)}
[ -e "$driver" ] || { echo "run.sh: no libcuda.so.1 on this machine" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ -n "$out" ] && exec >"$out"
export LD_LIBRARY_PATH="$(dirname "$driver")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
failed=0

fact() { echo "{\"step\": \"$1\", \"case\": \"$2\", \"ok\": null$3}"; }

wants() { case $steps in *" $1 "*) return 0 ;; esac; return 1; }

# run STEP SECONDS MODE COMMAND...: MODE is bare, observe, or a pool, with -event
run() {
	local step=$1 limit=$2 mode=$3 pool sync=strict status before after
	shift 3
	wants "$step" || return 0
	pool=${mode%-event}
	[ "$mode" = "$pool" ] || sync=event
	(
		export TM_GPU_MODE=$mode TIERMALLOC_LEDGER=off
		case $pool in
		bare) ;;
		observe) export TIERMALLOC_CUDA=observe LD_PRELOAD="$lib" ;;
		*) export TIERMALLOC_CUDA=pool TIERMALLOC_CUDA_POOL=$pool TIERMALLOC_CUDA_FREE_SYNC=$sync LD_PRELOAD="$lib" ;;
		esac
		exec timeout -k 5 "$limit" "$@"
	) >"$work/lines" 2>"$work/err"
	status=$?
	cat "$work/lines"
	echo "$step $mode $(basename "$1") ${*:2}: status $status" >&2
	if [ $status -ne 0 ] && ! grep -q '"ok": false' "$work/lines"; then
		tail -3 "$work/err" >&2
		echo "{\"step\": \"$step\", \"case\": \"$(basename "$1") ${*:2}\", \"ok\": false, \"mode\": \"$mode\", \"status\": $status}"
	fi
	[ $status -eq 0 ] || failed=1
}

# The programs, all from the sources beside this script.
for name in measure semantics race ipc trace bind; do
	cc -std=gnu11 -D_GNU_SOURCE -O2 -pthread "-I$src" -o "$work/$name" "$src/tests/cuda/gpu/$name.c" \
		"$driver" -ldl -lm || { echo "run.sh: $name can't be built" >&2; exit 2; }
done

# --- H0: where we are -----------------------------------------------------------------------------
if wants H0; then
	gpu=$(timeout 5 nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null | head -1)
	fact H0 machine ", \"gpu\": \"$gpu\", \"driver\": \"$(realpath "$driver")\", \"glibc\": \"$(getconf GNU_LIBC_VERSION)\", \"kernel\": \"$(uname -r)\", \"cpus\": $(nproc)"
fi

# --- H1: the runtimes, dynamic and static ---------------------------------------------------------
runtimes=${TM_GPU_RUNTIMES:-$(ldconfig -p | sed -n 's/.*libcudart\.so\.[0-9.]* .*=> //p' | sort -u)}
for dir in /usr/local/cuda*/lib64 /usr/local/cuda*/targets/*/lib; do
	[ -n "${TM_GPU_RUNTIMES:-}" ] || runtimes="$runtimes $(ls "$dir"/libcudart.so.[0-9]* 2>/dev/null | head -1)"
done
archive=${TM_GPU_ARCHIVE:-$(ls /usr/local/cuda*/lib64/libcudart_static.a 2>/dev/null | head -1)}
for r in $(printf '%s\n' $runtimes | xargs -r -n 1 realpath | sort -u | head -3); do
	for mode in bare observe; do
		run H1 10 $mode "$work/bind" "$r"
	done
done
if [ -n "$archive" ] && cc -std=gnu11 -D_GNU_SOURCE -DBIND_STATIC -pthread "-I$src" -o "$work/bind_static" \
	"$src/tests/cuda/gpu/bind.c" "$archive" "$driver" -ldl -lrt -lm 2>"$work/err"; then
	for mode in bare observe; do
		run H1 10 $mode "$work/bind_static" static
	done
fi

# --- first what decides whether the rest makes sense ----------------------------------------------
run H3 10 bare "$work/measure" lookup
run H4 20 bare "$work/semantics" facts
run H5 25 bare "$work/race" naive
for mode in observe cache cache-event slab slab-event vmm vmm-event; do
	run H5 25 $mode "$work/race" library
done
run H2 60 bare "$work/measure" latency
for mode in bare observe cache cache-event slab vmm; do
	run H6 10 $mode "$work/semantics" capture
done
for mode in bare observe cache slab vmm; do
	run H7 10 $mode "$work/ipc"
done
for mode in bare observe cache slab slab-event vmm; do
	for threads in 1 4 16; do
		run H8 10 $mode "$work/measure" pool $threads
	done
done
for mode in bare observe auto slab vmm; do
	run H13 15 $mode "$work/semantics" full
done
for way in 0 1 2 3 4; do
	for mode in observe slab vmm-event; do
		run H14 10 $mode "$work/semantics" exit $way
	done
done
for mode in bare cache slab vmm auto; do
	for trace in kv mix; do
		run H9 25 $mode "$work/trace" $trace
	done
done
for mode in bare auto slab vmm; do
	run H10 10 $mode "$work/trace" grow
	run H10 15 $mode "$work/trace" weights
done

# --- frameworks -----------------------------------------------------------------------------------
python=$(command -v python3 || :)
if [ -n "$python" ]; then
	for conf in default expandable_segments:True backend:cudaMallocAsync uncached; do
		run H11 40 bare "$python" "$src/tests/cuda/gpu/frameworks.py" torch $conf
		for mode in observe auto auto-event; do
			run H11 40 $mode "$python" "$src/tests/cuda/gpu/frameworks.py" torch $conf
		done
	done
	for what in cupy numba jax share; do
		for mode in bare observe auto; do
			run H12 20 $mode "$python" "$src/tests/cuda/gpu/frameworks.py" $what
		done
	done
else
	fact H11 "no python3" ""
fi
exit $failed
