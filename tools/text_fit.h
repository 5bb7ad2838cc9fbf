/* SPDX-License-Identifier: MIT */
/*
 * text_fit: what fits into a terminal's columns, and which characters a terminal may be sent. Texts are
 * UTF-8; a character has as many columns as the C library says it has in this locale. Pure but for that.
 */
#ifndef TM_TOOLS_TEXT_FIT_H
#define TM_TOOLS_TEXT_FIT_H

#include <stddef.h>

#include "shim/base/attrs.h"

enum tm_text_set { TM_TEXT_UTF8, TM_TEXT_ASCII };

/* What the locale of the environment can show. Sets LC_CTYPE. */
enum tm_text_set tm_text_fit_set(void);

/*
 * Names come from other people's files: what would steer a terminal, turn its writing round or is no
 * character is shown as '?', and so is all that is beyond the set.
 */
void tm_text_fit_defuse(char *text, enum tm_text_set set);

/* Bytes of the beginning that fill so many columns at most. */
size_t tm_text_fit_cut(const char *text, size_t columns);
size_t tm_text_fit_columns(const char *text);

/* Shortens a text to so many columns by what is in its middle: names differ at their ends. */
void tm_text_fit_squeeze(char *text, size_t columns);

#endif
