/* SPDX-License-Identifier: MIT */
/* utf8: what of a text is well formed. Pure. */
#ifndef TM_TOOLS_UTF8_H
#define TM_TOOLS_UTF8_H

#include <stddef.h>

/* Bytes of the character that a zero-ended text begins with; 0: no valid UTF-8, or its end. */
size_t tm_utf8_length(const unsigned char *text);

#endif
