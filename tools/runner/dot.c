/* SPDX-License-Identifier: MIT */
/* Chooses the kernels; see dot.h. */
#include "tools/runner/dot.h"

const struct yi_kernels *yi_dot_fastest(void)
{
	return &yi_dot_reference;
}
