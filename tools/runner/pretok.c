/* SPDX-License-Identifier: MIT */
#include "tools/runner/pretok.h"

#include <string.h>

#include "tools/runner/unicode.h"

static const struct yi_pretok known[] = {
	{"gpt-2", YI_PRETOK_GPT2, false, false},
	{"phi-2", YI_PRETOK_GPT2, false, false},
	{"jina-es", YI_PRETOK_GPT2, false, false},
	{"jina-de", YI_PRETOK_GPT2, false, false},
	{"jina-v2-es", YI_PRETOK_GPT2, false, false},
	{"jina-v2-de", YI_PRETOK_GPT2, false, false},
	{"gigachat", YI_PRETOK_GPT2, false, false},
	{"a.x-4.0", YI_PRETOK_GPT2, false, false},
	{"mellum", YI_PRETOK_GPT2, false, false},
	{"modern-bert", YI_PRETOK_GPT2, false, false},
	{"mpt", YI_PRETOK_GPT2, false, false},
	{"olmo", YI_PRETOK_GPT2, false, false},
	{"jais", YI_PRETOK_GPT2, false, false},
	{"exaone4", YI_PRETOK_GPT2, false, false},
	{"trillion", YI_PRETOK_GPT2, false, false},
	{"granite-docling", YI_PRETOK_GPT2, false, false},
	{"starcoder", YI_PRETOK_DIGITS, false, false},
	{"refact", YI_PRETOK_DIGITS, false, false},
	{"command-r", YI_PRETOK_DIGITS, false, false},
	{"smollm", YI_PRETOK_DIGITS, false, false},
	{"codeshell", YI_PRETOK_DIGITS, false, false},
	{"exaone", YI_PRETOK_DIGITS, false, false},
	{"minerva-7b", YI_PRETOK_DIGITS, false, false},
	{"mellum2", YI_PRETOK_DIGITS, false, false},
	{"llama3", YI_PRETOK_LLAMA3, true, true},
	{"llama-v3", YI_PRETOK_LLAMA3, true, true},
	{"llama-bpe", YI_PRETOK_LLAMA3, true, true},
	{"falcon3", YI_PRETOK_LLAMA3, true, true},
	{"falcon-h1", YI_PRETOK_LLAMA3, true, true},
	{"pixtral", YI_PRETOK_LLAMA3, true, true},
	{"midm-2.0", YI_PRETOK_LLAMA3, true, true},
	{"lfm2", YI_PRETOK_LLAMA3, true, true},
	{"dbrx", YI_PRETOK_LLAMA3, false, false},
	{"smaug-bpe", YI_PRETOK_LLAMA3, false, false},
	{"qwen2", YI_PRETOK_QWEN2, false, false},
	{"deepseek-r1-qwen", YI_PRETOK_QWEN2, false, false},
	{"kormo", YI_PRETOK_QWEN2, false, false},
	{"f2llmv2", YI_PRETOK_QWEN2, false, false},
	{"stablelm2", YI_PRETOK_QWEN2, false, false},
	{"megrez", YI_PRETOK_QWEN2, false, false},
	{"hunyuan", YI_PRETOK_QWEN2, false, false},
	{"solar-open", YI_PRETOK_QWEN2, false, false},
};

/* The stretch of text that is being cut: nothing is seen beyond its end. */
struct part {
	const uint32_t *codes;
	size_t end;
};

enum fold { FOLD_NONE, FOLD_CASE };

const struct yi_pretok *yi_pretok_find(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strlen(known[i].name) == len && memcmp(known[i].name, name, len) == 0)
			return &known[i];
	return NULL;
}

static uint32_t code_at(const struct part *part, size_t at)
{
	return at < part->end ? part->codes[at] : UINT32_MAX;
}

static enum yi_unicode_class class_at(const struct part *part, size_t at)
{
	return at < part->end ? yi_unicode_class(part->codes[at]) : YI_UNICODE_END;
}

static size_t run_end(const struct part *part, size_t at, enum yi_unicode_class class)
{
	while (class_at(part, at) == class)
		at++;
	return at;
}

static size_t newlines_end(const struct part *part, size_t at)
{
	while (code_at(part, at) == '\r' || code_at(part, at) == '\n')
		at++;
	return at;
}

static uint32_t letter_at(const struct part *part, size_t at, enum fold fold)
{
	uint32_t code = code_at(part, at);

	return fold == FOLD_CASE && code >= 'A' && code <= 'Z' ? code + ('a' - 'A') : code;
}

/* End of 's 't 'm 'd 're 've 'll at `at`; `at` itself: there is none. */
static size_t contraction_end(const struct part *part, size_t at, enum fold fold)
{
	uint32_t one, two;

	if (code_at(part, at) != '\'')
		return at;
	one = letter_at(part, at + 1, fold);
	two = letter_at(part, at + 2, fold);
	if (one == 's' || one == 't' || one == 'm' || one == 'd')
		return at + 2;
	if ((one == 'r' && two == 'e') || (one == 'v' && two == 'e') || (one == 'l' && two == 'l'))
		return at + 3;
	return at;
}

/* \s+(?!\S)|\s+: leaves the last blank to the word that follows. */
static size_t blanks_end(const struct part *part, size_t at)
{
	size_t end = run_end(part, at, YI_UNICODE_SPACE);

	if (end - at > 1 && end < part->end)
		return end - 1;
	return end > at ? end : at + 1;
}

static size_t gpt2_end(const struct part *part, size_t at)
{
	size_t end = contraction_end(part, at, FOLD_NONE);
	size_t first = at + (part->codes[at] == ' ');
	enum yi_unicode_class class = class_at(part, first);

	if (end > at)
		return end;
	if (class != YI_UNICODE_SPACE && class != YI_UNICODE_END)
		return run_end(part, first, class);
	return blanks_end(part, at);
}

/* Blanks that hold a line end are cut after the last one. */
static size_t lines_end(const struct part *part, size_t at)
{
	size_t end = run_end(part, at, YI_UNICODE_SPACE);

	while (end > at && newlines_end(part, end - 1) == end - 1)
		end--;
	return end > at ? end : blanks_end(part, at);
}

static size_t llama3_end(const struct part *part, size_t at, size_t max_digits)
{
	size_t end = contraction_end(part, at, FOLD_CASE);
	uint32_t code = part->codes[at];
	enum yi_unicode_class class = class_at(part, at);
	size_t first = at + (code == ' ');

	if (end > at)
		return end;
	if (code != '\r' && code != '\n' && class != YI_UNICODE_NUMBER &&
	    (class == YI_UNICODE_LETTER || class_at(part, at + 1) == YI_UNICODE_LETTER))
		return run_end(part, at + 1, YI_UNICODE_LETTER);
	if (class == YI_UNICODE_NUMBER) {
		end = run_end(part, at, YI_UNICODE_NUMBER);
		return end - at > max_digits ? at + max_digits : end;
	}
	if (class_at(part, first) == YI_UNICODE_OTHER)
		return newlines_end(part, run_end(part, first, YI_UNICODE_OTHER));
	return lines_end(part, at);
}

static size_t split_part(enum yi_pretok_kind kind, const struct part *part, size_t at,
			 size_t *ret_ends)
{
	size_t count = 0;

	while (at < part->end) {
		if (kind == YI_PRETOK_LLAMA3)
			at = llama3_end(part, at, 3);
		else if (kind == YI_PRETOK_QWEN2)
			at = llama3_end(part, at, 1);
		else
			at = gpt2_end(part, at);
		ret_ends[count++] = at;
	}
	return count;
}

size_t yi_pretok_split(enum yi_pretok_kind kind, const uint32_t *codes, size_t n, size_t *ret_ends)
{
	struct part part = {codes, n};
	size_t count = 0, start = 0;

	if (kind != YI_PRETOK_DIGITS)
		return split_part(kind, &part, 0, ret_ends);
	for (size_t at = 0; at <= n; at++) {
		if (at < n && yi_unicode_class(codes[at]) != YI_UNICODE_NUMBER)
			continue;
		part.end = at;
		count += split_part(YI_PRETOK_GPT2, &part, start, ret_ends + count);
		if (at < n)
			ret_ends[count++] = at + 1;
		start = at + 1;
	}
	return count;
}
