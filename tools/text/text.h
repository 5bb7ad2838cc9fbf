/* SPDX-License-Identifier: MIT */
/*
 * text: reports for people. On a terminal, table rows are cut to its width and sentences are
 * wrapped; in a pipe or a file neither. Colours only on a terminal, and not with NO_COLOR or
 * TERM=dumb. Reports use the document alone.
 */
#ifndef TM_TOOLS_TEXT_H
#define TM_TOOLS_TEXT_H

#include <stdio.h>

#include "tools/document/document.h"
#include "tools/text/text_fit.h"

struct tm_text {
	FILE *out;
	bool colours;
	unsigned width; /* 0: not cut */
	enum tm_text_set set;
};

enum tm_text_colour { TM_TEXT_PLAIN, TM_TEXT_BAD, TM_TEXT_GOOD, TM_TEXT_UNSURE, TM_TEXT_DIM };

/* What a report shows. */
struct tm_text_options {
	size_t top;         /* most entries of each list */
	const char *sort;   /* sort key; NULL: live */
	const char *filter; /* glob for functions, files, modules and site ids; NULL: all */
	const char *site;   /* the only site to show; NULL: all */
};

void tm_text_init(struct tm_text *t, FILE *out);

/* Prints one line. */
void tm_text_line(struct tm_text *t, enum tm_text_colour colour, const char *format, ...)
	TM_PRINTF(3, 4);

/* Prints a table row that ends in a name, whose middle is left out if it does not fit. */
void tm_text_named(struct tm_text *t, enum tm_text_colour colour, const char *name,
		   const char *format, ...) TM_PRINTF(4, 5);

/*
 * Prints a sentence. On a narrower terminal it is wrapped, with further lines indented by `indent`
 * columns; in a pipe or a file it is one line.
 */
void tm_text_prose(struct tm_text *t, enum tm_text_colour colour, unsigned indent,
		   const char *format, ...) TM_PRINTF(4, 5);

/* Formats "1.5 MiB"; "-" if unknown. Returns buf. */
const char *tm_text_bytes(char buf[24], uint64_t bytes);
/* Formats "150"; "-" if unknown. The result is valid until sixteen more calls. */
const char *tm_text_count(uint64_t count);
const char *tm_text_delta(char buf[24], int64_t bytes);
/* "+11.2 MiB/h" */
const char *tm_text_rate(char buf[32], double bytes_per_h);
/* "6h12m", "3.1s" */
const char *tm_text_time(char buf[24], uint64_t ms);

/* Prints the first line (the verdict), then which process it is about. */
void tm_text_head(struct tm_text *t, const struct tm_document *doc, const char *what);
void tm_text_blind_spots(struct tm_text *t, const struct tm_document *doc);
/* Prints the site's frame and its callers, at most "lines". */
void tm_text_stack(struct tm_text *t, const struct tm_document *doc, const struct tm_doc_site *site,
		   unsigned lines);
/* Prints the callers alone. */
void tm_text_callers(struct tm_text *t, const struct tm_document *doc, uint32_t stack,
		     unsigned lines);
/* Prints what the resident memory consists of. */
void tm_text_balance(struct tm_text *t, const struct tm_document *doc);

/* Device memory, as a part of each report; prints nothing if there is none. */
void tm_text_gpu(struct tm_text *t, const struct tm_document *doc);
void tm_text_gpu_leaks(struct tm_text *t, const struct tm_document *doc, size_t top);
void tm_text_gpu_frag(struct tm_text *t, const struct tm_document *doc);
void tm_text_gpu_pools(struct tm_text *t, const struct tm_document *doc);
void tm_text_gpu_diff(struct tm_text *t, const struct tm_document *doc, size_t top);
/* Prints one line per device and kind, at most "most"; returns how many there are. */
size_t tm_text_gpu_brief(struct tm_text *t, const struct tm_document *doc, size_t most);

/* Sites that pass the options' filter, in the requested order; NULL without memory. */
const struct tm_doc_site **tm_text_pick_sites(const struct tm_document *doc,
					      const struct tm_text_options *options,
					      size_t *ret_count);
/* Whether a glob (NULL: any) matches the site's id or a function, file or module of its stack. */
bool tm_text_site_matches(const struct tm_document *doc, const struct tm_doc_site *site,
			  const char *glob);
bool tm_text_is_sort_key(const char *key);

void tm_text_leaks(struct tm_text *t, const struct tm_document *doc,
		   const struct tm_text_options *options);
void tm_text_frag(struct tm_text *t, const struct tm_document *doc,
		  const struct tm_text_options *options);
void tm_text_full(struct tm_text *t, const struct tm_document *doc,
		  const struct tm_text_options *options);
void tm_text_site(struct tm_text *t, const struct tm_document *doc, const struct tm_doc_site *site);
void tm_text_diff(struct tm_text *t, const struct tm_document *doc,
		  const struct tm_text_options *options);

#endif
