/* SPDX-License-Identifier: MIT */
/*
 * text_fit: fits text into a terminal's columns, and removes characters that must not be sent to a
 * terminal. Texts are UTF-8; a character's width is what the C library says for this locale. Pure
 * otherwise.
 */
#ifndef TM_TOOLS_TEXT_FIT_H
#define TM_TOOLS_TEXT_FIT_H

#include <stdarg.h>
#include <stddef.h>

#include "shim/base/attrs.h"

enum tm_text_set { TM_TEXT_UTF8, TM_TEXT_ASCII };

/* Character set of the environment's locale. Sets LC_CTYPE. */
enum tm_text_set tm_text_fit_set(void);

/*
 * Names come from foreign files: replaces control characters, characters that change the writing
 * direction, invalid bytes, and all that is beyond the set, by '?'.
 */
void tm_text_fit_defuse(char *text, enum tm_text_set set);

/* A text for one line, defused, UTF-8 in any locale. Owned by the caller; NULL: no memory. */
char *tm_text_fit_format(const char *format, va_list args) TM_PRINTF(1, 0);

/* A defused copy, UTF-8 in any locale. Owned by the caller; NULL: no memory. */
char *tm_text_fit_copy(const char *text, size_t len);

/* Length in bytes of the longest prefix that fits into that many columns. */
size_t tm_text_fit_cut(const char *text, size_t columns);
size_t tm_text_fit_columns(const char *text);

/* Shortens a text to that many columns by removing its middle, since names differ at their ends. */
void tm_text_fit_squeeze(char *text, size_t columns);

#endif
