/* SPDX-License-Identifier: MIT */
/*
 * sha256: FIPS 180-4; used for the hashes by which a page's policy allows its own script and style.
 * Pure.
 */
#ifndef TM_TOOLS_SHA256_H
#define TM_TOOLS_SHA256_H

#include "shim/base/attrs.h"

void tm_sha256(const void *bytes, size_t len, unsigned char ret_hash[32]);

#endif
