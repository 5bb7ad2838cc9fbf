/* SPDX-License-Identifier: MIT */
/* cross: yes */
/* The library is loaded and says its release; without it the weak reference is NULL. */
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "shim/tiermalloc.h"

int main(void)
{
	if (tiermalloc_version == NULL) {
		fprintf(stderr, "the library is not loaded\n");
		return 1;
	}
	return strcmp(tiermalloc_version(), PACKAGE_VERSION) != 0;
}
