/* SPDX-License-Identifier: MIT */
/*
 * document: everything that is known about one process, as in the schema tiermalloc.report/1.
 * Filled from a ledger or from JSON; all reports and exporters take only this.
 *
 * All memory belongs to the document and is freed by tm_document_clear(). A text stored in it must
 * be copied with tm_document_text() unless it lives at least as long. Unknown values have a special
 * value, which is null in JSON: TM_DOC_UNKNOWN, TM_DOC_UNKNOWN_DELTA, NAN, TM_DOC_NOWHERE, a NULL
 * text, a word of 0. In new objects and rows all fields are unknown, flags false, lists empty.
 *
 * Live, alloc and free bytes are requested bytes; slot bytes are what was handed out for them.
 * Times are Unix nanoseconds.
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
#define TM_DOC_NOWHERE UINT32_MAX /* unknown index */

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
	struct tm_doc_texts cmdline; /* confidential: left out of HTML unless asked for */
	const char *program;         /* file name without folder */
	const char *host;
	const char *exe_build_id;
	const char *boot_id;
	const char *container;
	enum tm_doc_ended ended;
	uint64_t heartbeat_age_ms;
	uint64_t threads;
	uint64_t limit_bytes; /* memory limit of its cgroup */
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
	uint64_t windows;   /* windows recorded */
};

/*
 * Leak scans of the running process. A block is lost if two scans agree that nothing points to it.
 */
struct tm_doc_scans {
	enum tm_doc_scanned state;
	uint64_t passes;
	/* of the last pass, as are the fields below */
	uint64_t at_unix_ns, read_bytes, unread_bytes;
	uint64_t threads_stopped, threads_missed, stopped_us;
	uint64_t found_objs, found_bytes;
	uint64_t young_objs, young_bytes;
	const char *why; /* why there is no scan, or no new one */
};

/* What the first line of a report says. */
struct tm_doc_verdict {
	const char *text;
	enum tm_doc_outcome outcome;
	uint64_t growing, unreachable, at_exit, watch; /* number of entries of each kind */
	double growth_bytes_per_h;
	struct tm_doc_reals growth_ci95; /* lower and upper end, or empty */
	double limit_reached_h;
	struct tm_doc_reals limit_reached_ci95;
};

/* The resident memory by use: the fields from live_req on add up to rss_bytes. */
struct tm_doc_balance {
	uint64_t rss_bytes;
	int64_t live_req, internal, external, cached, metadata, other_anon, file, pinned,
		nonresident, residual;
};

/* Components of other_anon, file and pinned, and memory outside RSS that deserves a line. */
struct tm_doc_mapping {
	const char *name; /* "pymalloc arenas", "thread stacks", a file's name */
	const char *part; /* field of the balance that includes it; NULL: none */
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
	uint64_t max_bytes, refused; /* ceiling of the tier, and requests refused because of it */
	uint64_t sparse_pages;       /* 2 MiB pages less than half live */
	int64_t saved_bytes;         /* compared with no tiers; negative: lost */
	struct tm_doc_numbers life_hist_log2s;
	const char *verdict;
};

struct tm_doc_class {
	enum tm_doc_tier tier;
	uint64_t class_bytes, live_objs, req_bytes, spans;
	double internal, external; /* ratios; "int" and "ext" in JSON */
	uint64_t span_bytes;
	struct tm_doc_numbers span_fill_hist; /* number of spans by tenths of fullness */
};

struct tm_doc_size {
	uint64_t size, count, peak_concurrent;
	enum tm_doc_tier tier;
};

struct tm_doc_pool {
	enum tm_doc_tier tier;
	uint64_t slot_bytes, hits, misses, exhausted, high_water, slots;
};

/* One 2 MiB page of the heap. */
struct tm_doc_page {
	uint64_t addr;
	enum tm_doc_tier tier;
	uint64_t live_bytes;
	uint64_t longest_free;
	bool huge;
	const char *pinned_by; /* id of the site charged with most of its bytes */
	uint64_t pinned_bytes; /* live bytes of that site's oldest objects on the page */
	uint64_t sites;        /* number of sites with blocks on it */
};

struct tm_doc_hugepages {
	struct tm_doc_numbers density_hist; /* number of pages by tenths of live bytes */
	/* number of pages by log2 of the longest free run in bytes */
	struct tm_doc_numbers longest_free_hist;
	uint64_t huge_bytes, resident_bytes;
	TM_DOC_LIST(struct tm_doc_page) pages; /* by address; at most the first 65,536 */
};

struct tm_doc_module {
	uint64_t id; /* its index in the list; so also in frames and stacks */
	const char *path;
	const char *build_id;
	uint64_t base, end;
	uint64_t offset; /* file offset that is mapped at base */
	uint64_t loaded_ns, unloaded_ns;
};

struct tm_doc_frame {
	uint64_t id;
	uint32_t module;
	uint64_t addr;      /* return address; 0 in Python frames */
	const char *fn;     /* demangled */
	const char *symbol; /* raw */
	const char *file;
	uint64_t line;
	uint32_t inline_of; /* index of the frame that this one was inlined into */
	enum tm_doc_lang lang;
	enum tm_doc_sym sym;
};

/* Innermost first, without the allocator's own frames. */
struct tm_doc_stack {
	uint64_t id;
	struct tm_doc_numbers frames; /* indices into document.frames */
	bool truncated;
};

struct tm_doc_site {
	const char *id; /* "s:7f3a"; the same in every run of the same binaries */
	uint32_t stack;
	enum tm_doc_tier tier;
	enum tm_doc_authority authority;
	uint64_t height; /* bytes of stack below the thread's start; 0: not distinguished */
	uint64_t alloc_objs, alloc_bytes, free_objs, free_bytes, live_objs, live_bytes;
	uint64_t slot_bytes;
	uint64_t size_min, size_max;           /* sizes of requests */
	struct tm_doc_numbers life_hist_log2s; /* freed objects by log2 of seconds + 1 */
	struct tm_doc_numbers age_hist_log2s;  /* live objects by log2 of seconds + 1 */
	struct tm_doc_numbers age_bytes_hist_log2s;
	struct tm_doc_numbers cohorts; /* live objects by window of birth, oldest first */
	uint64_t temporary_objs;       /* objects freed in the window of their birth */
	double per_session, per_request;
	uint64_t frag_pinned_bytes;
	uint64_t growth_bytes; /* growth in bytes of old survivors, over the time captured */
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
	struct tm_doc_reals ci95; /* lower and upper end, or empty */
	double p, q, cohort_fill;
	struct tm_doc_corr corr;
	uint64_t direct, indirect; /* bytes */
	uint64_t direct_objs, indirect_objs;
	struct tm_doc_scan scan;
	uint64_t live_bytes, live_objs;
	double per_session, per_request;
	struct tm_doc_texts evidence;
	struct tm_doc_texts holders; /* what points to it, from the root down */
	const char *hint;
	bool acknowledged;
	uint64_t cap_bytes; /* cap of the acknowledgement */
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
	uint64_t step_s;       /* step of the newest part, in seconds */
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
	const char *reserved_by; /* framework whose cache holds it; NULL: the program itself */
	uint64_t base_live_objs, base_live_bytes; /* diff: of A */
	bool growing;                             /* growing in the sense of the list of leaks */
	double growth_bytes_per_h, confidence;    /* if tested; else NAN */
};

struct tm_doc_gpu {
	uint64_t dev;
	const char *api;
	const char *memory; /* "device", "pinned host" */
	uint64_t live_bytes, peak, live_objs;
	uint64_t alloc_objs, alloc_bytes;
	TM_DOC_LIST(struct tm_doc_gpu_site) sites;
};

/* Memory that a back end of the library's own pools holds in a context's device. */
struct tm_doc_gpu_pool {
	uint64_t dev;
	uint64_t context;
	const char *pool; /* "slabs", "chunks", "whole blocks", "pinned host" */
	uint64_t reserved_bytes, used_bytes, idle_bytes;
	uint64_t hits, misses; /* of the context; in its first row only */
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

/* The two sides of a diff: sites have base_* of A, everything else is B's. */
struct tm_doc_diff {
	const char *a, *b;
	uint64_t a_unix_ns, b_unix_ns;
	struct tm_doc_balance base; /* of A */
};

struct tm_doc_chunk; /* memory owned by the document */

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

/*
 * Initialises a document: everything unknown or empty; schema and tool.version set. Must be
 * followed by tm_document_clear().
 */
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
 * Appends a row, all fields unknown, and returns it; ids of modules, frames and stacks are set.
 * Valid until the next row is added to the same list. Out of memory ends the command with
 * TM_EXIT_TROUBLE, here and in all functions below.
 */
void *tm_document_add(struct tm_document *doc, enum tm_doc_list list);
struct tm_doc_gpu_site *tm_document_add_gpu_site(struct tm_document *doc, struct tm_doc_gpu *gpu);

/* Zeroed memory that lives as long as the document. */
void *tm_document_alloc(struct tm_document *doc, size_t bytes);

/* A copy of the text, owned by the document; NULL for NULL. */
const char *tm_document_text(struct tm_document *doc, const char *text);
const char *tm_document_format(struct tm_document *doc, const char *format, ...) TM_PRINTF(2, 3);

/* Append to a list. Texts are copied. */
void tm_document_push_number(struct tm_document *doc, struct tm_doc_numbers *list, uint64_t value);
void tm_document_push_real(struct tm_document *doc, struct tm_doc_reals *list, double value);
void tm_document_push_text(struct tm_document *doc, struct tm_doc_texts *list, const char *text);

/* The site with that id, or NULL. */
struct tm_doc_site *tm_document_site(const struct tm_document *doc, const char *id);

/* Names as in the schema, such as "session"; "" for 0. */
const char *tm_document_tier_name(enum tm_doc_tier tier);
const char *tm_document_leak_class_name(enum tm_doc_leak_class class);
const char *tm_document_ended_name(enum tm_doc_ended ended);
const char *tm_document_authority_name(enum tm_doc_authority authority);

/*
 * Checks the invariants: indices are within their lists, ids are indices, words are valid, leaks
 * name existing sites, a series has one value per time. Returns NULL, or what is wrong.
 */
const char *tm_document_check(struct tm_document *doc);

/* Writes one object and a newline; false if the stream has failed. tools/export/json_out.c */
bool tm_document_write_json(const struct tm_document *doc, FILE *out);

/*
 * Fills an initialised document. Returns 0, or -1 after one line that names file and key.
 * tools/document/json_in.c
 */
int tm_document_read_json(struct tm_document *doc, const char *path);

#endif
