/* SPDX-License-Identifier: MIT */
/* utf8: recognises well-formed UTF-8. Pure. */
#ifndef TM_TOOLS_UTF8_H
#define TM_TOOLS_UTF8_H

#include <stddef.h>

/* Length in bytes of the first character of a NUL-terminated text; 0: invalid UTF-8, or the end. */
size_t tm_utf8_length(const unsigned char *text);

#endif
