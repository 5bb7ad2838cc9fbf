# SPDX-License-Identifier: MIT
# Sources of the CUDA hooks go between if and else; the stub that --without-cuda links after else.
if HAVE_CUDA
libtiermalloc_so_SOURCES +=
else
libtiermalloc_so_SOURCES +=
endif
