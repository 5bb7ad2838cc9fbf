/* SPDX-License-Identifier: MIT */
#define TLS_BYTES 1664
#include "tests/preload/tls_bytes.h"
