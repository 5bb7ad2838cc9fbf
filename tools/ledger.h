/* SPDX-License-Identifier: MIT */
/*
 * ledger: reads a ledger (shim/base/ledger_format.h), of a process that runs or is gone. Nothing in
 * the file is trusted: it is copied by read (a file that is cut meanwhile faults nobody, holes stay
 * holes), counts of the header are checked against what the format can hold, and a record that makes
 * no sense costs itself: it is left out and counted as torn.
 */
#ifndef TM_TOOLS_LEDGER_H
#define TM_TOOLS_LEDGER_H

#include "shim/base/ledger_format.h"

#define TM_LEDGER_AGES 24u /* log2(seconds + 1) of an object's age */

/* Of the objects of a site that the last scan judged. */
struct tm_ledger_judged {
	uint64_t objects, bytes;
};

/* What one call site holds; heaps of all threads together. */
struct tm_ledger_site {
	uint64_t address; /* return address; 0: inherited, from before, or beyond the table */
	uint32_t height;  /* of the stack, in 16 bytes, + 1; 0: not told apart */
	uint8_t tier;     /* that holds most of it */
	uint64_t live_objects;
	uint64_t live_bytes;             /* requested */
	uint64_t slot_bytes;             /* what those occupy */
	uint64_t all_objects, all_bytes; /* that live, of any age: more than live_ with since_ms */
	uint64_t objects;                /* ever allocated */
	uint64_t bytes;
	uint64_t size_min, size_max; /* of what lives */
	uint64_t tier_bytes[TM_LEDGER_TIERS];
	struct tm_ledger_judged once, twice, indirect, stale; /* twice is part of once */
	uint64_t age_objects[TM_LEDGER_AGES], age_bytes[TM_LEDGER_AGES];
	uint64_t epochs[4]; /* bits: birth epochs, as entries hold them, of what lives */
};

struct tm_ledger {
	const char *path;
	int fd;
	unsigned char *image; /* copy of the file; holes are holes */
	struct tm_ledger_header header;
	struct tm_ledger_counters counters; /* at_ms 0: never written, or torn */
	struct tm_ledger_site *sites;       /* owned; largest live bytes first */
	size_t site_count;
	struct tm_ledger_site total;
	struct tm_ledger_judged
		young;      /* born in the window of the last scan or later: not judged */
	uint64_t torn;      /* records that make no sense */
	uint64_t read_ns;   /* Unix time of the copy */
	uint32_t *row_site; /* by heap and row: index of the site */
	uint64_t since_ms;  /* 0, or sites count only what is not older; `total` counts all */
	uint64_t now_ms;    /* tm_ledger_now_ms at the copy */
};

/* 0; or -1 after one line on standard error that names the file and what is wrong. */
int tm_ledger_open(struct tm_ledger *ledger, const char *path);
int tm_ledger_open_since(struct tm_ledger *ledger, const char *path, uint64_t since_ms);
void tm_ledger_close(struct tm_ledger *ledger);

/* Of this version. Says nothing; the version that it has, 0: it is no ledger. */
bool tm_ledger_is_readable(const char *path, uint32_t *ret_version);

/* Of a process, in clock ticks since boot; 0: there is none. */
uint64_t tm_ledger_start_time(uint32_t pid);

/* Part of the copy, as the tables of ledger_format.h have it. */
const void *tm_ledger_at(const struct tm_ledger *ledger, uint64_t offset);

/* Reads a record with a `seq` word at "seq_at" anew until it is whole; false after three times. */
bool tm_ledger_whole(const struct tm_ledger *ledger, uint64_t offset, void *ret_record,
		     size_t bytes, size_t seq_at);

/* "running", "clean" or "killed". */
const char *tm_ledger_ended(const struct tm_ledger *ledger);

/* Whether the process that wrote it still runs, in this boot and name space of process ids. */
bool tm_ledger_runs(const struct tm_ledger *ledger);

/* Unix time of a moment of the target's clock; 0 for 0. */
uint64_t tm_ledger_unix_ns(const struct tm_ledger *ledger, uint64_t at_ms);

/* The target's clock when the copy was made, or when it was last heard of. */
uint64_t tm_ledger_now_ms(const struct tm_ledger *ledger);

/* The record of the module that holds an address, one that is loaded before others; NULL: none. */
const struct tm_ledger_module *tm_ledger_module(const struct tm_ledger *ledger, uint64_t address,
						uint32_t epoch);

/* The stack of a key, the one that most of its samples have; NULL: none was captured. */
const struct tm_ledger_stack *tm_ledger_stack(const struct tm_ledger *ledger, uint64_t site,
					      uint32_t height);

/*
 * The return address of a key: of one with a Python line, that of the call in C, which
 * its stack tells; 0: not known.
 */
uint64_t tm_ledger_return_address(const struct tm_ledger *ledger, uint64_t site,
				  const struct tm_ledger_stack *stack);

/* A Python function of a stack's word, its texts not ended by NULs; NULL: none is there. */
const struct tm_ledger_python *tm_ledger_python(const struct tm_ledger *ledger, uint64_t word);

/* "libfoo.so+0x1234" of an address. */
void tm_ledger_name(const struct tm_ledger *ledger, uint64_t address, char *buf, size_t size);

/* A span, or a block of whole pages. */
struct tm_ledger_extent {
	const struct tm_ledger_granule *granule;
	uint64_t address, bytes;
	uint8_t tier;
	uint32_t slots; /* of a span, those that were never handed out included */
};

struct tm_ledger_object {
	const struct tm_ledger_extent *extent;
	struct tm_ledger_site *site;
	uint64_t address, bytes, slot_bytes;
	uint32_t age;      /* windows; UINT32_MAX: not told apart */
	uint64_t birth_ns; /* of the target's clock; 0: not known */
	uint8_t epoch8;    /* of birth, as the entry holds it */
	uint32_t verdict;  /* bits 1 << enum tm_ledger_verdict */
};

/* Each extent, then each live object in it, by address. Either may be NULL. */
typedef void tm_ledger_see_extent(void *ctx, const struct tm_ledger_extent *extent);
typedef void tm_ledger_see_object(void *ctx, const struct tm_ledger_object *object);
void tm_ledger_walk(struct tm_ledger *ledger, tm_ledger_see_extent *see_extent,
		    tm_ledger_see_object *see_object, void *ctx);

/* ledger_sites.c: merges rows of all heaps and counts what lives; 0 or -ENOMEM. */
int tm_ledger_count_sites(struct tm_ledger *ledger);

#endif
