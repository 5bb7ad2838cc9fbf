/* SPDX-License-Identifier: MIT */
/*
 * Code points: UTF-8 in and out, and the three classes that pre-tokenizers split by.
 *
 * Pure functions over constant tables; any thread.
 */
#ifndef YI_UNICODE_H
#define YI_UNICODE_H

#include <stddef.h>
#include <stdint.h>

enum yi_unicode_class {
	YI_UNICODE_OTHER,
	YI_UNICODE_LETTER,
	YI_UNICODE_NUMBER,
	YI_UNICODE_SPACE,
	YI_UNICODE_END /* past the end of a text; no code point has it */
};

#define YI_UNICODE_REPLACEMENT 0xfffdu
/* Bytes that a code point takes at most. */
#define YI_UNICODE_BYTES 4

enum yi_unicode_class yi_unicode_class(uint32_t code);

/* Length of the character that starts with `lead`, by that byte alone: 1 .. 4. */
size_t yi_unicode_length(uint8_t lead);

/*
 * Decodes one character and returns the bytes used, at least 1.  Lenient as vocabularies expect
 * it: overlong forms and surrogates pass, a byte that starts no character is U+FFFD.
 */
size_t yi_unicode_decode(const char *text, size_t bytes, uint32_t *ret_code);

/* Writes the UTF-8 form of a code point below 0x110000, returns its length. */
size_t yi_unicode_encode(uint32_t code, char ret_bytes[YI_UNICODE_BYTES]);

/*
 * Strict check of the character at the start of a text: its length where it is well-formed; 0
 * where more bytes are needed to tell; otherwise minus the number of bytes to replace by one
 * U+FFFD (the longest prefix of a well-formed character, at least 1).
 */
int yi_unicode_check(const char *text, size_t bytes);

#endif
