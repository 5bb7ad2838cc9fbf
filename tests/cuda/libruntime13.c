/* SPDX-License-Identifier: MIT */
/* libs: libcudart.so.13 */
/* libruntime13: a plug-in that was linked with the runtime of CUDA 13. */
#include "tests/cuda/runtime_plugin.h"
