/* SPDX-License-Identifier: MIT */
/* libs: libcudart.so.12 */
/* libruntime12: a plug-in that was linked with the runtime of CUDA 12. */
#include "tests/cuda/runtime_plugin.h"
