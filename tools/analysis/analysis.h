/* SPDX-License-Identifier: MIT */
/*
 * analysis: turns a ledger into the report document. All judgement happens here; reports and
 * exporters only print. analysis_sites.c names and symbolises sites, analysis_leaks.c finds leaks,
 * analysis_frag.c fragmentation, analysis_gpu.c handles device memory, and balance.c explains the
 * resident memory.
 */
#ifndef TM_TOOLS_ANALYSIS_H
#define TM_TOOLS_ANALYSIS_H

#include "shim/base/fmt.h"
#include "tools/analysis/growth.h"
#include "tools/analysis/symbols.h"
#include "tools/document/document.h"
#include "tools/ledger/control.h"
#include "tools/ledger/ledger.h"

#define TM_ANALYSIS_ALL SIZE_MAX

struct tm_analysis_options {
	enum tm_doc_kind kind;
	const char *debug_dir;    /* directory searched first for debug files; NULL: none */
	const char *suppressions; /* suppressions file in LeakSanitizer's format; NULL: none */
	int scan;                 /* result of tm_control_prepare() */
	/* how many of the largest sites get symbols; sites in leaks always do */
	size_t symbol_sites;
};

/* A span or block with something live, by address. */
struct tm_analysis_extent {
	uint64_t address, bytes;
};

struct tm_analysis_key {
	uint64_t address;
	uint32_t height;
	uint32_t site;
};

/*
 * State shared by the parts of the analysis. Sites are numbered as in the ledger, and so in the
 * document.
 */
struct tm_analysis {
	const struct tm_analysis_options *options;
	struct tm_ledger *ledger;
	struct tm_document *doc;
	struct tm_symbols *symbols;
	struct tm_analysis_key *keys;          /* keys of all sites, sorted by address and height */
	unsigned char *wants_symbols;          /* by site */
	struct tm_growth **growth;             /* by site; NULL: not tested */
	const struct tm_ledger_stack **stacks; /* sorted by site and height */
	size_t stack_count;
	/* frames that are in the document already; of analysis_sites.c */
	struct tm_analysis_seen *seen;
	struct tm_analysis_extent *extents;
	size_t extent_count, extent_room;
	/* bytes of those extents, and of spans without live blocks */
	uint64_t span_bytes, idle_bytes;
};

/* First key that is not less than this one: where sites of an address and height begin. */
const struct tm_analysis_key *tm_analysis_key(const struct tm_analysis *a, uint64_t address,
					      uint32_t height);

/* Fills an initialised document. Returns 0, or -1 after one line on standard error. */
int tm_analysis_fill(struct tm_document *doc, struct tm_ledger *ledger,
		     const struct tm_analysis_options *options);

/*
 * The parts, in the order of calls: ids first; then leaks, which mark sites that need symbols;
 * names of sites last.
 */
void tm_analysis_add_ids(struct tm_analysis *a);
void tm_analysis_add_stacks(struct tm_analysis *a);
/* Share of the samples of a site's key that have the stack which is shown. */
double tm_analysis_stack_share(const struct tm_analysis *a, size_t site, uint64_t *ret_samples);
void tm_analysis_find_leaks(struct tm_analysis *a);
/* Runs the growth test on a record; also returns the length of its windows. */
struct tm_growth *tm_analysis_test(struct tm_analysis *a, const struct tm_ledger_cohorts *c,
				   double *ret_window_ms);
#define TM_ANALYSIS_FALSE_DISCOVERIES 0.01
#define TM_ANALYSIS_CONFIDENCE_MAX 0.999
void tm_analysis_judge_leaks(struct tm_analysis *a);
void tm_analysis_find_fragments(struct tm_analysis *a);
void tm_analysis_add_tables(struct tm_analysis *a);
/* Whether the live bytes at the largest resident size are known. */
bool tm_analysis_knows_peak(const struct tm_ledger_counters *c);
/* To be called after the process was added to the document. */
void tm_analysis_add_scan(struct tm_analysis *a);
/* Text that says what no scan has judged yet; false: nothing to say. */
bool tm_analysis_young(const struct tm_analysis *a, char *buf, size_t size);
/*
 * Writes the verdict if no leak is listed; `young` of the `live` blocks are too young to be judged.
 */
void tm_analysis_say_no_leak(struct tm_fmt_out *out, uint64_t live, uint64_t young);
void tm_analysis_add_balance(struct tm_analysis *a);
/* To be called after the stacks of the sites were added. */
void tm_analysis_add_gpu(struct tm_analysis *a);
/*
 * Adds a stack with names and returns its number: the stack sampled for the key, else the address
 * alone.
 */
uint32_t tm_analysis_stack_of(struct tm_analysis *a, uint64_t address, uint32_t height);

/*
 * The frame of a site that a reader looks for: the innermost one outside allocators and the C and
 * C++ libraries. NULL: the site has no stack.
 */
const struct tm_doc_frame *tm_analysis_frame(const struct tm_document *doc,
					     const struct tm_doc_site *site);
const struct tm_doc_frame *tm_analysis_frame_of(const struct tm_document *doc, uint32_t stack);

/*
 * Whether a function and file (either may be NULL) belong to such a library; the same for a frame;
 * whether a frame is Python's interpreter.
 */
bool tm_analysis_is_library(const char *fn, const char *file);
bool tm_analysis_is_plumbing(const struct tm_document *doc, const struct tm_doc_frame *frame);
bool tm_analysis_is_interpreter(const struct tm_document *doc, const struct tm_doc_frame *frame);

/* "grow_cache (infer.cpp:21)", or "libfoo.so+0x1234". */
void tm_analysis_name_frame(const struct tm_document *doc, const struct tm_doc_frame *frame,
			    char *buf, size_t size);

#endif
