/* SPDX-License-Identifier: MIT */
/*
 * api: the functions of tiermalloc.h. Each is a line or two over the modules; any thread.
 */
#include "shim/tiermalloc.h"

#include "shim/base/attrs.h"
#include "shim/base/version.h"

TM_EXPORT const char *tiermalloc_version(void)
{
	return tm_version_string();
}
