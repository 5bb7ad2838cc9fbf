/* SPDX-License-Identifier: MIT */
/*
 * ledger: reads a ledger (shim/base/ledger_format.h) of a running or ended process. Nothing in the
 * file is trusted. It is copied with read(), so that a file truncated meanwhile causes no fault and
 * holes stay holes; counts in the header are checked against the limits of the format; an invalid
 * record is left out and counted as torn.
 */
#ifndef TM_TOOLS_LEDGER_H
#define TM_TOOLS_LEDGER_H

#include "shim/base/ledger_format.h"

#define TM_LEDGER_AGES 24u /* log2(seconds + 1) of an object's age */

/* Objects of a site that the last scan gave one verdict. */
struct tm_ledger_judged {
	uint64_t objects, bytes;
};

/* Totals of one call site over the heaps of all threads. */
struct tm_ledger_site {
	/* return address; 0: inherited, from before the library, or beyond the table */
	uint64_t address;
	uint32_t height; /* stack height in 16 bytes, + 1; 0: not distinguished */
	uint8_t tier;    /* tier with most of its bytes */
	uint64_t live_objects;
	uint64_t live_bytes; /* requested */
	uint64_t slot_bytes; /* bytes of their slots */
	/* live objects of any age; more than live_* if since_ms is set */
	uint64_t all_objects, all_bytes;
	uint64_t objects; /* ever allocated */
	uint64_t bytes;
	uint64_t size_min, size_max; /* of live objects */
	uint64_t tier_bytes[TM_LEDGER_TIERS];
	struct tm_ledger_judged once, twice, indirect, stale; /* twice is part of once */
	uint64_t age_objects[TM_LEDGER_AGES], age_bytes[TM_LEDGER_AGES];
	uint64_t epochs[4]; /* bit set of the birth epochs of live objects, as entries hold them */
};

struct tm_ledger {
	const char *path;
	int fd;
	unsigned char *image; /* copy of the file, with its holes */
	struct tm_ledger_header header;
	struct tm_ledger_counters counters; /* at_ms is 0 if never written, or torn */
	struct tm_ledger_site *sites;       /* owned; largest live bytes first */
	size_t site_count;
	struct tm_ledger_site total;
	/* born in the window of the last scan or later, so not judged */
	struct tm_ledger_judged young;
	uint64_t torn;      /* invalid records */
	uint64_t read_ns;   /* Unix time of the copy */
	uint32_t *row_site; /* index of the site by heap and row */
	/* if not 0, sites count only objects at most this old; `total` counts all */
	uint64_t since_ms;
	uint64_t now_ms; /* tm_ledger_now_ms at the copy */
};

/* Returns 0, or -1 after one line on standard error that names the file and the problem. */
int tm_ledger_open(struct tm_ledger *ledger, const char *path);
int tm_ledger_open_since(struct tm_ledger *ledger, const char *path, uint64_t since_ms);
void tm_ledger_close(struct tm_ledger *ledger);

/*
 * Whether the file is a ledger of this version. Prints nothing. *ret_version is its version; 0: not
 * a ledger.
 */
bool tm_ledger_is_readable(const char *path, uint32_t *ret_version);

/* Start time of a process in clock ticks since boot; 0: there is none. */
uint64_t tm_ledger_start_time(uint32_t pid);

/* Pointer into the copy, at an offset of ledger_format.h. */
const void *tm_ledger_at(const struct tm_ledger *ledger, uint64_t offset);

/*
 * Copies a record guarded by a `seq` word (at "seq_at"), again until it is consistent; false after
 * three attempts.
 */
bool tm_ledger_whole(const struct tm_ledger *ledger, uint64_t offset, void *ret_record,
		     size_t bytes, size_t seq_at);

/* How the process ended: "running", "clean" or "killed". */
const char *tm_ledger_ended(const struct tm_ledger *ledger);

/* Whether the process that wrote it still runs, in this boot and PID namespace. */
bool tm_ledger_runs(const struct tm_ledger *ledger);

/* Converts a time of the target's clock to Unix nanoseconds; 0 stays 0. */
uint64_t tm_ledger_unix_ns(const struct tm_ledger *ledger, uint64_t at_ms);

/* The target's clock when the copy was made, or when it was last active. */
uint64_t tm_ledger_now_ms(const struct tm_ledger *ledger);

/* The module that holds an address, preferring one that is still loaded; NULL: none. */
const struct tm_ledger_module *tm_ledger_module(const struct tm_ledger *ledger, uint64_t address,
						uint32_t epoch);

/* The stack that most samples of a key have; NULL: none was captured. */
const struct tm_ledger_stack *tm_ledger_stack(const struct tm_ledger *ledger, uint64_t site,
					      uint32_t height);

/*
 * The return address of a key. For a key with a Python line it is that of the call in C, which the
 * stack shows; 0: unknown.
 */
uint64_t tm_ledger_return_address(const struct tm_ledger *ledger, uint64_t site,
				  const struct tm_ledger_stack *stack);

/*
 * The Python function that a stack's word stands for; its texts are not NUL-terminated. NULL: none.
 */
const struct tm_ledger_python *tm_ledger_python(const struct tm_ledger *ledger, uint64_t word);

/* Formats an address as "libfoo.so+0x1234". */
void tm_ledger_name(const struct tm_ledger *ledger, uint64_t address, char *buf, size_t size);

/* A span, or a block of whole pages. */
struct tm_ledger_extent {
	const struct tm_ledger_granule *granule;
	uint64_t address, bytes;
	uint8_t tier;
	uint32_t slots; /* slots of a span, including those never handed out */
};

struct tm_ledger_object {
	const struct tm_ledger_extent *extent;
	struct tm_ledger_site *site;
	uint64_t address, bytes, slot_bytes;
	uint32_t age;      /* age in windows; UINT32_MAX: unknown */
	uint64_t birth_ns; /* of the target's clock; 0: not known */
	uint8_t epoch8;    /* epoch of its birth, as the entry holds it */
	uint32_t verdict;  /* bits 1 << enum tm_ledger_verdict */
};

/*
 * Calls see_extent for each extent and see_object for each live object in it, by address. Either
 * may be NULL.
 */
typedef void tm_ledger_see_extent(void *ctx, const struct tm_ledger_extent *extent);
typedef void tm_ledger_see_object(void *ctx, const struct tm_ledger_object *object);
void tm_ledger_walk(struct tm_ledger *ledger, tm_ledger_see_extent *see_extent,
		    tm_ledger_see_object *see_object, void *ctx);

/* ledger_sites.c: merges the rows of all heaps and counts live objects. Returns 0 or -ENOMEM. */
int tm_ledger_count_sites(struct tm_ledger *ledger);

#endif
