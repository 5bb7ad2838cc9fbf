/* SPDX-License-Identifier: MIT */
/*
 * Compares the runner's memory by class with the preloaded library's by tier, at one moment of a
 * run: did the library, which sees only calls of malloc, tell weights, sessions and temporaries
 * apart?
 */
#ifndef YI_TIERS_H
#define YI_TIERS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Numbers are the library's; 0 is the total. */
enum yi_tier { YI_TIER_TOTAL, YI_TIER_PERSISTENT, YI_TIER_SESSION, YI_TIER_TEMPORARY, YI_TIERS };

struct yi_tiers {
	bool due;                  /* the next evaluation is to take a sample, from inside it */
	bool sampled, library;     /* library: its numbers are available */
	uint64_t ours[YI_TIERS];   /* live bytes of the classes that belong in the tier */
	uint64_t theirs[YI_TIERS]; /* live bytes of the tier */
	uint64_t theirs_kept, theirs_resident; /* free and kept; in RAM */
};

/* The tier a class of memory (enum yi_mem_class) belongs in. */
enum yi_tier yi_tiers_of_class(int class);
const char *yi_tiers_name(enum yi_tier tier);
void yi_tiers_sample(struct yi_tiers *tiers);
/* Prints nothing if no sample was taken; without the library its column is empty. */
void yi_tiers_print(const struct yi_tiers *tiers, FILE *out);
/*
 * Writes a member "tiers" of a JSON object, after a comma; library_bytes are null without the
 * library.
 */
void yi_tiers_write(const struct yi_tiers *tiers, FILE *out);

#endif
