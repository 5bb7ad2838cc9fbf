#!/bin/sh
# SPDX-License-Identifier: MIT
# A library opens its parts by name and finds them by its own $ORIGIN, although dlopen is replaced
# (memray#212). It lies in a folder that no other path leads to.
set -eu
mkdir parts
cp "$TM_TESTS/libcudnn_like.so" "$TM_TESTS/libcudnn_like_ops.so" parts
cat >try.py <<'PY'
import ctypes
library = ctypes.CDLL("./parts/libcudnn_like.so")
library.cudnn_like_part.restype = ctypes.c_char_p
error = library.cudnn_like_part()
assert error is None, error
PY
for preload in "" "$TM_LIB"; do
	LD_PRELOAD=$preload python3 try.py
done
