/* SPDX-License-Identifier: MIT */
#include "tools/analysis/ranges.h"

#include <stdlib.h>

void tm_ranges_add(struct tm_ranges *r, uint64_t low, uint64_t high, uint64_t number)
{
	if (low >= high)
		return;
	if (r->count == r->room) {
		size_t room = r->room ? 2 * r->room : 64;
		struct tm_range *at = realloc(r->at, room * sizeof(*at));

		if (at == NULL) {
			r->failed = true;
			return;
		}
		r->at = at;
		r->room = room;
	}
	r->at[r->count++] = (struct tm_range){low, high, 0, number};
}

static int by_low(const void *a, const void *b)
{
	const struct tm_range *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

void tm_ranges_sort(struct tm_ranges *r)
{
	uint64_t reach = 0;

	if (r->count)
		qsort(r->at, r->count, sizeof(*r->at), by_low);
	for (size_t i = 0; i < r->count; i++) {
		if (r->at[i].high > reach)
			reach = r->at[i].high;
		r->at[i].reach = reach;
	}
}

void tm_ranges_clear(struct tm_ranges *r)
{
	free(r->at);
	*r = (struct tm_ranges){0};
}

/* Among the first "count" ranges, which begin at or below the address. */
static const struct tm_range *last_of(const struct tm_ranges *r, size_t count, uint64_t address)
{
	while (count > 0 && r->at[count - 1].reach > address) {
		if (r->at[--count].high > address)
			return &r->at[count];
	}
	return NULL;
}

const struct tm_range *tm_ranges_find(const struct tm_ranges *r, uint64_t address)
{
	size_t low = 0, high = r->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (r->at[middle].low <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return last_of(r, low, address);
}

const struct tm_range *tm_ranges_next(const struct tm_ranges *r, const struct tm_range *range,
				      uint64_t address)
{
	return last_of(r, (size_t)(range - r->at), address);
}
