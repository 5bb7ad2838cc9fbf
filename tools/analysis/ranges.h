/* SPDX-License-Identifier: MIT */
/*
 * ranges: a table of address ranges, each with a number, that is filled, sorted once and then
 * searched. Ranges may overlap. One thread.
 */
#ifndef TM_TOOLS_RANGES_H
#define TM_TOOLS_RANGES_H

#include <stddef.h>

#include "shim/base/attrs.h"

struct tm_range {
	uint64_t low, high; /* "high" lies behind it */
	uint64_t reach;     /* the highest "high" of this range and those before it */
	uint64_t number;    /* the caller's */
};

/* Begins as zeroes. */
struct tm_ranges {
	struct tm_range *at; /* by low, then by number */
	size_t count, room;
	bool failed; /* without memory: some are missing */
};

/* Adds [low, high); an empty one is left out. */
void tm_ranges_add(struct tm_ranges *ranges, uint64_t low, uint64_t high, uint64_t number);

/* To be called after the last tm_ranges_add(). */
void tm_ranges_sort(struct tm_ranges *ranges);

void tm_ranges_clear(struct tm_ranges *ranges);

/* The last range, in the table's order, that contains an address; NULL: none does. */
const struct tm_range *tm_ranges_find(const struct tm_ranges *ranges, uint64_t address);

/* The one before "range" that contains the address; NULL: none does. */
const struct tm_range *tm_ranges_next(const struct tm_ranges *ranges, const struct tm_range *range,
				      uint64_t address);

#endif
