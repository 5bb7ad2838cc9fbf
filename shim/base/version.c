/* SPDX-License-Identifier: MIT */
#include "shim/base/version.h"

#include "config.h"

const char *tm_version_string(void)
{
	return PACKAGE_VERSION;
}
