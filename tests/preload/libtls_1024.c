/* SPDX-License-Identifier: MIT */
#define TLS_BYTES 1024
#include "tests/preload/tls_bytes.h"
