/* SPDX-License-Identifier: MIT */
/*
 * Optional interface of the preloaded library. All functions are weak symbols: a program compiled
 * with this header also runs without the library, so test a function's address before the call:
 *
 *	if (tiermalloc_trim)
 *		tiermalloc_trim(TIERMALLOC_AUTO);
 *
 * All functions may be called from any thread, but from a signal handler only where that is said.
 */
#ifndef TIERMALLOC_H
#define TIERMALLOC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TIERMALLOC_WEAK __attribute__((weak))

/* Tiers: kinds of lifetime. AUTO: the library decides; as an argument of trim: all tiers. */
enum tiermalloc_tier {
	TIERMALLOC_AUTO,
	TIERMALLOC_PERSISTENT, /* loaded once, never freed: weights, tables */
	TIERMALLOC_SESSION,    /* lives through many steps: caches, the state of a request */
	TIERMALLOC_TEMPORARY,  /* dies within a step: activations, scratch, messages */
};

/*
 * Tells the library that a session (a request, a conversation) begins, and so that the program serves
 * and no longer loads. The name may be NULL; this release keeps none. Returns the session's number,
 * which is never reused, or 0 where the library does not serve the program.
 */
TIERMALLOC_WEAK uint64_t tiermalloc_session_begin(const char *name);

/* Tells the library that a session is over. 0 is ignored. */
TIERMALLOC_WEAK void tiermalloc_session_end(uint64_t session);

/* A step (a token, a batch) is over. Signal-safe. */
TIERMALLOC_WEAK void tiermalloc_step(void);

/*
 * Names what the calling thread does until the matching pop. Tags nest, per thread. Reserved for
 * reports by tag: this release accepts the calls and ignores them.
 */
TIERMALLOC_WEAK void tiermalloc_tag_push(const char *tag);
TIERMALLOC_WEAK void tiermalloc_tag_pop(void);

/*
 * Allocates size bytes aligned to align (0: as malloc; else a power of two) in a tier (enum
 * tiermalloc_tier). Free it with free, resize it with realloc. On failure NULL and errno: ENOMEM,
 * or EINVAL for an invalid align or tier.
 */
TIERMALLOC_WEAK void *tiermalloc_alloc(size_t size, size_t align, int tier);

/*
 * Appends a line of tiermalloc-rules(5) to the rules. 0; -EINVAL: not a rule; -ENOMEM; -ENOSPC:
 * more than about 64 rules; -EOPNOTSUPP: guard= without guards chosen at program start; -ENOSYS:
 * the library is not serving this program.
 */
TIERMALLOC_WEAK int tiermalloc_set_tier(const char *rule);

/* Returns free memory of a tier to the system now. Result: the bytes returned. */
TIERMALLOC_WEAK size_t tiermalloc_trim(int tier);

/* Index 0 of the arrays is the total, the others are by enum tiermalloc_tier. */
struct tiermalloc_stats {
	uint64_t struct_bytes;    /* in: sizeof the caller's struct */
	uint64_t live_bytes[4];   /* requested and not freed */
	uint64_t slot_bytes[4];   /* occupied by those blocks */
	uint64_t cached_bytes[4]; /* free, kept for reuse */
	uint64_t resident_bytes;  /* of the blocks' memory, in RAM */
	uint64_t peak_bytes;      /* largest total so far; small blocks count as whole spans */
	uint64_t sessions;        /* begun and not ended */
};

/*
 * Fills the fields that fit into struct_bytes. 0; -EINVAL: struct_bytes is less than 8; -ENOSYS:
 * the library is not serving this program (TIERMALLOC=off). Makes the kernel walk the process's
 * mappings: don't call it in every step.
 */
TIERMALLOC_WEAK int tiermalloc_stats(struct tiermalloc_stats *stats);

/*
 * Writes a report (kind: exit, leak, frag, full) to a descriptor. 0 or -errno; -EINVAL: another
 * kind; -ENOSYS: a kind that only tiermalloc(1) can write.
 */
TIERMALLOC_WEAK int tiermalloc_report(int fd, const char *kind);

/* The release, e.g. "0.1.0": static storage. Signal-safe. */
TIERMALLOC_WEAK const char *tiermalloc_version(void);

#ifdef __cplusplus
}
#endif

#endif
