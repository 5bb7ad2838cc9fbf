#!/bin/sh
# SPDX-License-Identifier: MIT
# The script for a machine with a GPU in rehearsal on the fake driver: every step gives lines of JSON,
# none of them false, and the whole ends in time. The frameworks find no device.
set -eu
if ! grep -q 'TM_HAVE_CUDA 1' "$TM_BUILD/config.h"; then
	echo "built without the CUDA hooks"
	exit 77
fi
status=0
CUDA_VISIBLE_DEVICES='' TMFAKE_CAPACITY=140G TM_GPU_QUICK=1 TM_GPU_DRIVER=$TM_TESTS/libcuda.so.1 \
	TM_GPU_RUNTIMES="$TM_TESTS/libcudart.so.12 $TM_TESTS/libcudart.so.13" \
	TM_GPU_ARCHIVE=$TM_TESTS/libcudart_static.a \
	"$TM_SRC/tests/cuda/gpu/run.sh" -l "$TM_LIB" >lines 2>err || status=$?
python3 - <<'PY' || { cat err; exit 1; }
import json
lines = [json.loads(l) for l in open("lines")]
bad = [l for l in lines if l["ok"] is False]
steps = {l["step"] for l in lines}
missing = [f"H{i}" for i in range(15) if f"H{i}" not in steps]
for b in bad[:10]:
    print(b)
print(f"{len(lines)} results of {len(steps)} steps, {len(bad)} false, missing: {' '.join(missing) or 'none'}")
raise SystemExit(bool(bad or missing))
PY
[ $status = 0 ]
