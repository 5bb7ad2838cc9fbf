/* SPDX-License-Identifier: MIT */
/*
 * Optional interface of the preloaded library. Everything is weak: a program compiled with this
 * header runs the same without the library, so test the address of a function before the call:
 *
 *	if (tiermalloc_trim)
 *		tiermalloc_trim(TIERMALLOC_AUTO);
 *
 * All functions may be called from any thread; none may be called from a signal handler unless that
 * is said.
 */
#ifndef TIERMALLOC_H
#define TIERMALLOC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TIERMALLOC_WEAK __attribute__((weak))

/* Where memory of one kind of life lives. AUTO: the library decides; as an argument of trim: all. */
enum tiermalloc_tier {
	TIERMALLOC_AUTO,
	TIERMALLOC_PERSISTENT, /* loaded once, never freed: weights, tables */
	TIERMALLOC_SESSION,    /* lives through many steps: caches, the state of a request */
	TIERMALLOC_TEMPORARY,  /* dies within a step: activations, scratch, messages */
};

/*
 * Tells the library that a session (a request, a conversation) begins. The name, which may be NULL,
 * is copied. Returns its number, which is never used again, or 0 without memory.
 */
TIERMALLOC_WEAK uint64_t tiermalloc_session_begin(const char *name);

/* The session is over: what is still allocated for it is reported. 0 is ignored. */
TIERMALLOC_WEAK void tiermalloc_session_end(uint64_t session);

/* A step (a token, a batch) is over. Signal-safe. */
TIERMALLOC_WEAK void tiermalloc_step(void);

/*
 * Names what the calling thread does until the matching pop; the text is copied. Reports tell
 * allocations by it. Tags nest, per thread.
 */
TIERMALLOC_WEAK void tiermalloc_tag_push(const char *tag);
TIERMALLOC_WEAK void tiermalloc_tag_pop(void);

/*
 * size bytes at a multiple of align (0: as malloc; else a power of two), in a tier (enum
 * tiermalloc_tier). Freed with free, resized with realloc. NULL with errno: ENOMEM, or EINVAL for
 * another align or tier.
 */
TIERMALLOC_WEAK void *tiermalloc_alloc(size_t size, size_t align, int tier);

/*
 * Adds one line of tiermalloc-rules(5) behind those there are. 0, -EINVAL for a line that is no rule,
 * -ENOMEM, -ENOSPC for the 65th or so, -EOPNOTSUPP for guards that were not chosen at the start, -ENOSYS
 * where the library is not at work.
 */
TIERMALLOC_WEAK int tiermalloc_set_tier(const char *rule);

/* Gives free memory of a tier back to the system, now. Returns the bytes given back. */
TIERMALLOC_WEAK size_t tiermalloc_trim(int tier);

/* Bytes; index 0 of the arrays is the total, the others are by enum tiermalloc_tier. */
struct tiermalloc_stats {
	uint64_t struct_bytes;    /* set by the caller to the size of its struct */
	uint64_t live_bytes[4];   /* asked for and not freed */
	uint64_t slot_bytes[4];   /* the same, as the blocks occupy it */
	uint64_t cached_bytes[4]; /* free and kept for reuse */
	uint64_t resident_bytes;  /* of all blocks' memory, in RAM */
	uint64_t peak_bytes;      /* largest total at any time; small blocks count by their spans */
	uint64_t sessions;        /* begun and not ended */
};

/*
 * Fills what the caller's struct has room for. 0, -EINVAL when struct_bytes is too small for itself,
 * -ENOSYS when the library is not serving this program (TIERMALLOC=off). Costs the kernel a walk
 * over the process's mappings: not for every step.
 */
TIERMALLOC_WEAK int tiermalloc_stats(struct tiermalloc_stats *stats);

/*
 * Writes a report (exit, leak, frag, full) to a descriptor. 0 or -errno; -EINVAL for another kind,
 * -ENOSYS for one that this build can write only by tiermalloc(1).
 */
TIERMALLOC_WEAK int tiermalloc_report(int fd, const char *kind);

/* The release, e.g. "0.1.0": static storage. Signal-safe. */
TIERMALLOC_WEAK const char *tiermalloc_version(void);

#ifdef __cplusplus
}
#endif

#endif
