/* SPDX-License-Identifier: MIT */
/*
 * analysis: from a ledger to the report document. Everything that is judged is judged here; reports
 * and exporters only print. analysis_sites.c names and symbolises, analysis_leaks.c looks for leaks,
 * analysis_frag.c for what fragments, analysis_gpu.c for device memory, balance.c explains the resident memory.
 */
#ifndef TM_TOOLS_ANALYSIS_H
#define TM_TOOLS_ANALYSIS_H

#include "shim/base/fmt.h"
#include "tools/control.h"
#include "tools/document.h"
#include "tools/growth.h"
#include "tools/ledger.h"
#include "tools/symbols.h"

#define TM_ANALYSIS_ALL SIZE_MAX

struct tm_analysis_options {
	enum tm_doc_kind kind;
	const char *debug_dir;    /* NULL, or where debug files are looked for first */
	const char *suppressions; /* NULL, or a file as LeakSanitizer has it */
	int scan;                 /* of tm_control_prepare() */
	size_t symbol_sites;      /* sites that hold most and get names; those in leaks always do */
};

/* Of spans and blocks with something live, by address. */
struct tm_analysis_extent {
	uint64_t address, bytes;
};

struct tm_analysis_key {
	uint64_t address;
	uint32_t height;
	uint32_t site;
};

/* Between the parts of the analysis; sites by their number in the ledger, which is the document's. */
struct tm_analysis {
	const struct tm_analysis_options *options;
	struct tm_ledger *ledger;
	struct tm_document *doc;
	struct tm_symbols *symbols;
	struct tm_analysis_key *keys;          /* of all sites, by address and height */
	unsigned char *wants_symbols;          /* by site */
	struct tm_growth **growth;             /* by site; NULL: not tested */
	const struct tm_ledger_stack **stacks; /* by site and height */
	size_t stack_count;
	struct tm_analysis_seen *seen; /* frames that the document has, of analysis_sites.c */
	struct tm_analysis_extent *extents;
	size_t extent_count, extent_room;
	uint64_t span_bytes, idle_bytes; /* of those, and of spans with nothing live */
};

/* The first key that is not below; where sites of an address and height are asked for. */
const struct tm_analysis_key *tm_analysis_key(const struct tm_analysis *a, uint64_t address,
					      uint32_t height);

/* Fills an initialised document. 0; or -1 after one line on standard error. */
int tm_analysis_fill(struct tm_document *doc, struct tm_ledger *ledger,
		     const struct tm_analysis_options *options);

/* The parts. Ids first; leaks say which sites want symbols; sites are named last. */
void tm_analysis_add_ids(struct tm_analysis *a);
void tm_analysis_add_stacks(struct tm_analysis *a);
/* Of the samples of a site's key, the share that had the stack that is shown. */
double tm_analysis_stack_share(const struct tm_analysis *a, size_t site, uint64_t *ret_samples);
void tm_analysis_find_leaks(struct tm_analysis *a);
/* The growth test of a record; how long its windows were. */
struct tm_growth *tm_analysis_test(struct tm_analysis *a, const struct tm_ledger_cohorts *c,
				   double *ret_window_ms);
#define TM_ANALYSIS_FALSE_DISCOVERIES 0.01
#define TM_ANALYSIS_CONFIDENCE_MAX 0.999
void tm_analysis_judge_leaks(struct tm_analysis *a);
void tm_analysis_find_fragments(struct tm_analysis *a);
void tm_analysis_add_tables(struct tm_analysis *a);
/* Whether what lived at the largest resident size was seen. */
bool tm_analysis_knows_peak(const struct tm_ledger_counters *c);
/* After the process. */
void tm_analysis_add_scan(struct tm_analysis *a);
/* What no scan has judged, for a reader; false: there is nothing to say. */
bool tm_analysis_young(const struct tm_analysis *a, char *buf, size_t size);
/* The verdict where no leak is listed; `young` of the `live` blocks are too young to be judged. */
void tm_analysis_say_no_leak(struct tm_fmt_out *out, uint64_t live, uint64_t young);
void tm_analysis_add_balance(struct tm_analysis *a);
/* After the stacks of the sites. */
void tm_analysis_add_gpu(struct tm_analysis *a);
/* The number of a new stack, with names: that of the key, else the address alone. */
uint32_t tm_analysis_stack_of(struct tm_analysis *a, uint64_t address, uint32_t height);

/*
 * The frame of a site that a reader looks for: the innermost that is no allocator's, C library's or
 * C++ library's own. NULL: the site has no stack.
 */
const struct tm_doc_frame *tm_analysis_frame(const struct tm_document *doc,
					     const struct tm_doc_site *site);
const struct tm_doc_frame *tm_analysis_frame_of(const struct tm_document *doc, uint32_t stack);

/* The same by function and file, each may be NULL. */
bool tm_analysis_is_library(const char *fn, const char *file);
bool tm_analysis_is_plumbing(const struct tm_document *doc, const struct tm_doc_frame *frame);
bool tm_analysis_is_interpreter(const struct tm_document *doc, const struct tm_doc_frame *frame);

/* "grow_cache (infer.cpp:21)", or "libfoo.so+0x1234". */
void tm_analysis_name_frame(const struct tm_document *doc, const struct tm_doc_frame *frame,
			    char *buf, size_t size);

#endif
