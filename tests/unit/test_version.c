/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "config.h"
#include "shim/base/version.h"

Test(version, string_is_the_release_of_configure)
{
	cr_assert_str_eq(tm_version_string(), PACKAGE_VERSION);
}
