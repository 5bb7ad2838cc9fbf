/* SPDX-License-Identifier: MIT */
/*
 * document: what is known about one process, as schema tiermalloc.report/1 has it. It is filled from
 * a ledger or from JSON; every report and every exporter takes this and nothing else.
 *
 * All memory hangs off the document and goes with tm_document_clear(); texts given to it must be
 * copied with tm_document_text() unless they live at least as long. What is not known has a value of
 * its own, which is null in JSON: TM_DOC_UNKNOWN, TM_DOC_UNKNOWN_DELTA, NAN, TM_DOC_NOWHERE, a NULL
 * text, a word of 0. Objects and new rows start with every field unknown, flags false, lists empty.
 *
 * Live, alloc and free bytes are requested ones, slot bytes what was given for them. Times are Unix
 * nanoseconds.
 *
 * One thread. Invariants: tm_document_check().
 */
#ifndef TM_TOOLS_DOCUMENT_H
#define TM_TOOLS_DOCUMENT_H

#include <stdio.h>

#include "shim/base/attrs.h"

#define TM_DOC_SCHEMA "tiermalloc.report/1"

#define TM_DOC_UNKNOWN UINT64_MAX
#define TM_DOC_UNKNOWN_DELTA INT64_MIN
#define TM_DOC_NOWHERE UINT32_MAX /* of an index */

/* A list: TM_DOC_LIST(struct x) is { struct x *at; size_t count, room; }. */
#define TM_DOC_LIST(type)                                                                          \
	struct {                                                                                   \
		type *at;                                                                          \
		size_t count, room;                                                                \
	}

struct tm_doc_numbers {
	uint64_t *at;
	size_t count, room;
};
struct tm_doc_reals {
	double *at;
	size_t count, room;
};
struct tm_doc_texts {
	const char **at;
	size_t count, room;
};

enum tm_doc_kind { TM_DOC_LEAK = 1, TM_DOC_FRAG, TM_DOC_FULL, TM_DOC_DIFF };
enum tm_doc_ended { TM_DOC_RUNNING = 1, TM_DOC_CLEAN, TM_DOC_KILLED };
enum tm_doc_counts { TM_DOC_EXACT = 1, TM_DOC_SAMPLED };
enum tm_doc_tier { TM_DOC_PERSISTENT = 1, TM_DOC_SESSION, TM_DOC_TEMPORARY }; /* as tiers.def */
enum tm_doc_lang { TM_DOC_LANG_C = 1, TM_DOC_LANG_CPP, TM_DOC_LANG_PY };
enum tm_doc_sym { TM_DOC_SYM_DEBUG = 1, TM_DOC_SYM_SYMTAB, TM_DOC_SYM_DYNSYM, TM_DOC_SYM_NONE };
enum tm_doc_leak_class { TM_DOC_GROWING = 1, TM_DOC_UNREACHABLE, TM_DOC_EXIT };
enum tm_doc_scanned { TM_DOC_NEVER = 1, TM_DOC_ONCE, TM_DOC_NOTHING, TM_DOC_LOST };
enum tm_doc_outcome { TM_DOC_FINE = 1, TM_DOC_FOUND, TM_DOC_INCONCLUSIVE };
enum tm_doc_authority {
	TM_DOC_BY_RULE = 1,
	TM_DOC_BY_LEARNED,
	TM_DOC_BY_PROFILE,
	TM_DOC_BY_SIZE,
	TM_DOC_BY_DEFAULT,
	TM_DOC_BY_PHASE,
	TM_DOC_BY_CALLER,
};

struct tm_doc_tool {
	const char *version;
	struct tm_doc_texts features;
};

struct tm_doc_process {
	uint64_t pid;
	uint64_t start_unix_ns;
	struct tm_doc_texts cmdline; /* secret: left out of HTML unless asked for */
	const char *program;         /* its file's name without folder */
	const char *host;
	const char *exe_build_id;
	const char *boot_id;
	const char *container;
	enum tm_doc_ended ended;
	uint64_t heartbeat_age_ms;
	uint64_t threads;
	uint64_t limit_bytes; /* of its cgroup */
	const char *ledger;   /* path of the file */
};

struct tm_doc_capture {
	uint64_t t0_unix_ns, t1_unix_ns;
	enum tm_doc_counts counts;
	uint64_t stack_interval_bytes; /* 0: no sampled stacks */
	uint64_t seqlock_torn;
	uint64_t sites_dropped;
	bool pre_attach;
	uint64_t window_ms; /* of the growth test */
	uint64_t windows;   /* seen */
};

/* Live scans for blocks that nothing points to; a block is lost when two agree. */
struct tm_doc_scans {
	enum tm_doc_scanned state;
	uint64_t passes;
	uint64_t at_unix_ns, read_bytes, unread_bytes; /* of the last pass, as below */
	uint64_t threads_stopped, threads_missed, stopped_us;
	uint64_t found_objs, found_bytes;
	uint64_t young_objs, young_bytes;
	const char *why; /* there was none, or no new one, when this was read */
};

/* What line one of a report says. */
struct tm_doc_verdict {
	const char *text;
	enum tm_doc_outcome outcome;
	uint64_t growing, unreachable, at_exit, watch; /* entries */
	double growth_bytes_per_h;
	struct tm_doc_reals growth_ci95; /* two, or none */
	double limit_reached_h;
	struct tm_doc_reals limit_reached_ci95;
};

/* Parts of rss_bytes; everything from live_req on sums to it. */
struct tm_doc_balance {
	uint64_t rss_bytes;
	int64_t live_req, internal, external, cached, metadata, other_anon, file, pinned,
		nonresident, residual;
};

/* What other_anon, file and pinned consist of, and what is outside of RSS but worth a line. */
struct tm_doc_mapping {
	const char *name; /* "pymalloc arenas", "thread stacks", a file's name */
	const char *part; /* the key of balance that holds it; NULL: none */
	uint64_t bytes;   /* resident */
	uint64_t mapped_bytes;
	uint64_t count;
};

struct tm_doc_tier_row {
	enum tm_doc_tier tier;
	uint64_t live_req, live_objs, slot, span, cached;
	uint64_t peak_live, peak_rss;
	double blowup_now, blowup_peak;
	double huge_cov, purity;
	uint64_t max_bytes, refused; /* ceiling of the tier, requests it turned down */
	uint64_t sparse_pages;       /* 2 MiB pages less than half live */
	int64_t saved_bytes;         /* against no tiers; negative: lost */
	struct tm_doc_numbers life_hist_log2s;
	const char *verdict;
};

struct tm_doc_class {
	enum tm_doc_tier tier;
	uint64_t class_bytes, live_objs, req_bytes, spans;
	double internal, external; /* ratios; "int" and "ext" in JSON */
	uint64_t span_bytes;
	struct tm_doc_numbers span_fill_hist; /* spans by tenths of fullness */
};

struct tm_doc_size {
	uint64_t size, count, peak_concurrent;
	enum tm_doc_tier tier;
};

struct tm_doc_pool {
	enum tm_doc_tier tier;
	uint64_t slot_bytes, hits, misses, exhausted, high_water, slots;
};

/* One 2 MiB page of ours. */
struct tm_doc_page {
	uint64_t addr;
	enum tm_doc_tier tier;
	uint64_t live_bytes;
	uint64_t longest_free;
	bool huge;
	const char *pinned_by; /* id of the site that is charged most */
	uint64_t pinned_bytes; /* live bytes of its oldest objects there */
	uint64_t sites;        /* that have blocks on it */
};

struct tm_doc_hugepages {
	struct tm_doc_numbers density_hist;      /* pages by tenths of live bytes */
	struct tm_doc_numbers longest_free_hist; /* by log2 of bytes */
	uint64_t huge_bytes, resident_bytes;
	TM_DOC_LIST(struct tm_doc_page) pages; /* by address; at most the first 65,536 */
};

struct tm_doc_module {
	uint64_t id; /* its place in the list; so also of frames and stacks */
	const char *path;
	const char *build_id;
	uint64_t base, end;
	uint64_t offset; /* in the file, of base */
	uint64_t loaded_ns, unloaded_ns;
};

struct tm_doc_frame {
	uint64_t id;
	uint32_t module;
	uint64_t addr;      /* return address; in python frames 0 */
	const char *fn;     /* demangled */
	const char *symbol; /* raw */
	const char *file;
	uint64_t line;
	uint32_t inline_of; /* the frame that this one was inlined into */
	enum tm_doc_lang lang;
	enum tm_doc_sym sym;
};

/* Innermost first, without the allocator's own frames. */
struct tm_doc_stack {
	uint64_t id;
	struct tm_doc_numbers frames; /* of document.frames */
	bool truncated;
};

struct tm_doc_site {
	const char *id; /* "s:7f3a", stable over runs of the same binaries */
	uint32_t stack;
	enum tm_doc_tier tier;
	enum tm_doc_authority authority;
	uint64_t height; /* bytes of stack below the thread's start; 0: not told apart */
	uint64_t alloc_objs, alloc_bytes, free_objs, free_bytes, live_objs, live_bytes;
	uint64_t slot_bytes;
	uint64_t size_min, size_max;           /* of a request */
	struct tm_doc_numbers life_hist_log2s; /* freed objects by log2 of seconds + 1 */
	struct tm_doc_numbers age_hist_log2s;  /* live objects by log2 of seconds + 1 */
	struct tm_doc_numbers age_bytes_hist_log2s;
	struct tm_doc_numbers cohorts; /* live objects by window of birth, oldest first */
	uint64_t temporary_objs;       /* freed within their window */
	double per_session, per_request;
	uint64_t frag_pinned_bytes;
	uint64_t growth_bytes; /* of old survivors, in the time captured */
	double growth_bytes_per_h;
	uint64_t unreachable_objs, unreachable_bytes;
	double est_rel_err;
	uint64_t base_alloc_objs, base_alloc_bytes, base_live_objs,
		base_live_bytes; /* diff: of A */
	const char *tag;
};

struct tm_doc_corr {
	double requests, tokens;
};

struct tm_doc_scan {
	uint64_t passes, threads_stopped, threads_missed;
};

struct tm_doc_leak {
	uint64_t rank;
	const char *site;
	enum tm_doc_leak_class class;
	double confidence;
	double slope_bytes_per_h;
	struct tm_doc_reals ci95; /* two, or none */
	double p, q, cohort_fill;
	struct tm_doc_corr corr;
	uint64_t direct, indirect; /* bytes */
	uint64_t direct_objs, indirect_objs;
	struct tm_doc_scan scan;
	uint64_t live_bytes, live_objs;
	double per_session, per_request;
	struct tm_doc_texts evidence;
	struct tm_doc_texts holders; /* who holds it, from the root down */
	const char *hint;
	bool acknowledged;
	uint64_t cap_bytes; /* of the acknowledgement */
};

struct tm_doc_watch {
	const char *site;
	enum tm_doc_leak_class class;
	const char *note;
};

struct tm_doc_series {
	const char *name; /* rss, live, limit, tier.session.live, gpu.used; bytes */
	struct tm_doc_reals values;
};

struct tm_doc_timeline {
	uint64_t step_s;       /* of the newest part */
	struct tm_doc_reals t; /* Unix seconds, rising; older parts may be coarser */
	TM_DOC_LIST(struct tm_doc_series) series;
};

struct tm_doc_gpu_site {
	const char *site;
	const char *kind;
	uint64_t live_bytes, live_objs, peak;
	uint64_t alloc_objs, alloc_bytes;
	uint64_t context; /* handle */
	uint32_t stack;
	enum tm_doc_tier tier;
	const char *reserved_by; /* the framework whose cache it is; NULL: the program's own */
	uint64_t base_live_objs, base_live_bytes; /* diff: of A */
	bool growing;                             /* as entries of leaks are */
	double growth_bytes_per_h, confidence;    /* of one that was tested; else not a number */
};

struct tm_doc_gpu {
	uint64_t dev;
	const char *api;
	const char *memory; /* "device", "pinned host" */
	uint64_t live_bytes, peak, live_objs;
	uint64_t alloc_objs, alloc_bytes;
	TM_DOC_LIST(struct tm_doc_gpu_site) sites;
};

/* What a back end of the library's own pools took of a context's device. */
struct tm_doc_gpu_pool {
	uint64_t dev;
	uint64_t context;
	const char *pool; /* "slabs", "chunks", "whole blocks", "pinned host" */
	uint64_t reserved_bytes, used_bytes, idle_bytes;
	uint64_t hits, misses; /* of the context, in its first row */
};

struct tm_doc_event {
	uint64_t at_unix_ns;
	const char *kind;
	const char *text;
};

struct tm_doc_suggestion {
	const char *rule; /* a line of tiermalloc-rules(5) */
	const char *why;
	uint64_t saves_bytes;
};

/* The two sides of a diff: sites carry base_*, everything else is of B. */
struct tm_doc_diff {
	const char *a, *b;
	uint64_t a_unix_ns, b_unix_ns;
	struct tm_doc_balance base; /* of A */
};

struct tm_doc_chunk; /* memory of the document */

struct tm_document {
	const char *schema;
	enum tm_doc_kind kind;
	struct tm_doc_tool tool;
	struct tm_doc_process process;
	struct tm_doc_capture capture;
	struct tm_doc_scans scan;
	struct tm_doc_verdict verdict;
	struct tm_doc_balance balance;
	TM_DOC_LIST(struct tm_doc_mapping) mappings;
	TM_DOC_LIST(struct tm_doc_tier_row) tiers;
	TM_DOC_LIST(struct tm_doc_class) classes;
	TM_DOC_LIST(struct tm_doc_size) sizes;
	TM_DOC_LIST(struct tm_doc_pool) pools;
	struct tm_doc_hugepages hugepages;
	TM_DOC_LIST(struct tm_doc_module) modules;
	TM_DOC_LIST(struct tm_doc_frame) frames;
	TM_DOC_LIST(struct tm_doc_stack) stacks;
	TM_DOC_LIST(struct tm_doc_site) sites; /* largest live bytes first */
	TM_DOC_LIST(struct tm_doc_leak) leaks;
	TM_DOC_LIST(struct tm_doc_watch) watch;
	struct tm_doc_timeline timeline;
	TM_DOC_LIST(struct tm_doc_gpu) gpu;
	TM_DOC_LIST(struct tm_doc_gpu_pool) gpu_pools;
	TM_DOC_LIST(struct tm_doc_event) events;
	TM_DOC_LIST(struct tm_doc_suggestion) suggestions;
	struct tm_doc_diff diff;
	struct tm_doc_texts blind_spots;

	struct tm_doc_chunk *chunks; /* private */
};

/* Everything unknown or empty; schema and tool.version set. Needs a tm_document_clear() later. */
void tm_document_init(struct tm_document *doc);
void tm_document_clear(struct tm_document *doc);

/* Lists that tm_document_add() appends to. */
enum tm_doc_list {
	TM_DOC_MAPPINGS,
	TM_DOC_TIERS,
	TM_DOC_CLASSES,
	TM_DOC_SIZES,
	TM_DOC_POOLS,
	TM_DOC_PAGES,
	TM_DOC_MODULES,
	TM_DOC_FRAMES,
	TM_DOC_STACKS,
	TM_DOC_SITES,
	TM_DOC_LEAKS,
	TM_DOC_WATCH,
	TM_DOC_SERIES,
	TM_DOC_GPU,
	TM_DOC_GPU_POOLS,
	TM_DOC_EVENTS,
	TM_DOC_SUGGESTIONS,
};

/*
 * A new last row of a list, all of it unknown; ids of modules, frames and stacks are set. Valid until
 * the next row is added to the same list. Without memory the command ends with TM_EXIT_TROUBLE, here
 * and in everything below.
 */
void *tm_document_add(struct tm_document *doc, enum tm_doc_list list);
struct tm_doc_gpu_site *tm_document_add_gpu_site(struct tm_document *doc, struct tm_doc_gpu *gpu);

/* Zeroed memory that lives as long as the document. */
void *tm_document_alloc(struct tm_document *doc, size_t bytes);

/* A copy; NULL of NULL. */
const char *tm_document_text(struct tm_document *doc, const char *text);
const char *tm_document_format(struct tm_document *doc, const char *format, ...) TM_PRINTF(2, 3);

/* Append. The text is copied. */
void tm_document_push_number(struct tm_document *doc, struct tm_doc_numbers *list, uint64_t value);
void tm_document_push_real(struct tm_document *doc, struct tm_doc_reals *list, double value);
void tm_document_push_text(struct tm_document *doc, struct tm_doc_texts *list, const char *text);

/* NULL where there is none. */
struct tm_doc_site *tm_document_site(const struct tm_document *doc, const char *id);

/* "session"; "" for 0. The words of the schema. */
const char *tm_document_tier_name(enum tm_doc_tier tier);
const char *tm_document_leak_class_name(enum tm_doc_leak_class class);
const char *tm_document_ended_name(enum tm_doc_ended ended);
const char *tm_document_authority_name(enum tm_doc_authority authority);

/*
 * Indices lie in their lists, ids are places, words are known, leaks name sites, a series has as many
 * values as there are times. NULL, or what is wrong.
 */
const char *tm_document_check(struct tm_document *doc);

/* One object and a newline; false when the stream has failed. tools/json_out.c */
bool tm_document_write_json(const struct tm_document *doc, FILE *out);

/* Fills an initialised document; 0, or -1 after one line that names file and key. tools/json_in.c */
int tm_document_read_json(struct tm_document *doc, const char *path);

#endif
