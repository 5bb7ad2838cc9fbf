/* SPDX-License-Identifier: MIT */
/* A prompt out of a file. */
#ifndef YI_PROMPT_H
#define YI_PROMPT_H

#include <stddef.h>

#include "tools/runner/error.h"

/* The whole file, or standard input for "-"; YI_MEM_REQUESTS, the caller's.  NULL: error says why. */
char *yi_prompt_read(const char *path, size_t *ret_len, struct yi_error *error);

#endif
