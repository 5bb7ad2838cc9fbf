/* SPDX-License-Identifier: MIT */
#define TLS_BYTES 512
#include "tests/preload/tls_bytes.h"
