/* SPDX-License-Identifier: MIT */
/* The ledger's plain tables: sizes, pools, timeline, events, decisions. See analysis.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/fmt.h"
#include "tools/analysis/analysis.h"

#define SIZES_SHOWN 256u
#define EVENTS_SHOWN 200u

static int by_count(const void *a, const void *b)
{
	const struct tm_ledger_size *x = *(const struct tm_ledger_size *const *)a;
	const struct tm_ledger_size *y = *(const struct tm_ledger_size *const *)b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return x->size < y->size ? -1 : x->size > y->size;
}

static enum tm_doc_tier tier_of(uint32_t tier)
{
	return tier < TM_LEDGER_TIERS ? tier : 0;
}

static void add_sizes(struct tm_analysis *a)
{
	const struct tm_ledger_size *s = tm_ledger_at(a->ledger, TM_LEDGER_SIZES_AT);
	const struct tm_ledger_size **used =
		tm_document_alloc(a->doc, TM_LEDGER_SIZES * sizeof(*used));
	size_t n = 0;

	for (size_t i = 0; i < TM_LEDGER_SIZES; i++) {
		if (s[i].size)
			used[n++] = &s[i];
	}
	qsort(used, n, sizeof(*used), by_count);
	for (size_t i = 0; i < n && i < SIZES_SHOWN; i++) {
		if ((used[i]->flags & TM_LEDGER_SIZE_SEEN) == 0)
			continue;
		tm_document_push_text(
			a->doc, &a->doc->blind_spots,
			"sizes of 4 to 64 KiB are counted once a second, so that there may have been "
			"more requests (exact with TIERMALLOC_LEDGER=deep)");
		break;
	}
	for (size_t i = 0; i < n && i < SIZES_SHOWN; i++) {
		struct tm_doc_size *row = tm_document_add(a->doc, TM_DOC_SIZES);

		row->size = used[i]->size;
		row->count = used[i]->count;
		row->peak_concurrent = used[i]->peak;
		row->tier = tier_of(used[i]->tier);
	}
}

static void add_pools(struct tm_analysis *a)
{
	const struct tm_ledger_pool *p = tm_ledger_at(a->ledger, TM_LEDGER_POOLS_AT);

	for (uint32_t i = 0; i < a->ledger->header.pools; i++, p++) {
		if (p->slot_bytes == 0)
			continue;
		struct tm_doc_pool *row = tm_document_add(a->doc, TM_DOC_POOLS);
		row->tier = tier_of(p->tier);
		row->slot_bytes = p->slot_bytes;
		row->hits = p->hits;
		row->misses = p->misses;
		row->exhausted = p->exhausted;
		row->high_water = p->high_water;
		row->slots = p->count;
	}
}

/* --- timeline --------------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
	const struct tm_ledger_sample *x = *(const struct tm_ledger_sample *const *)a;
	const struct tm_ledger_sample *y = *(const struct tm_ledger_sample *const *)b;

	return x->at_ms < y->at_ms ? -1 : x->at_ms > y->at_ms;
}

/*
 * Merges the rings of seconds, minutes and hours into one series; where two cover the same time the
 * finer one is used.
 */
static size_t pick_samples(const struct tm_analysis *a, const struct tm_ledger_sample **ret)
{
	static const uint32_t length[3] = {TM_LEDGER_RING_S, TM_LEDGER_RING_MIN, TM_LEDGER_RING_H};
	const struct tm_ledger_sample *ring = tm_ledger_at(a->ledger, TM_LEDGER_SAMPLES_AT);
	uint64_t before = UINT64_MAX;
	size_t n = 0;

	for (unsigned r = 0; r < 3; r++) {
		uint64_t oldest = before;

		for (uint32_t i = 0; i < length[r]; i++) {
			if (ring[i].at_ms == 0 || ring[i].at_ms >= before)
				continue;
			ret[n++] = &ring[i];
			if (ring[i].at_ms < oldest)
				oldest = ring[i].at_ms;
		}
		before = oldest;
		ring += length[r];
	}
	qsort(ret, n, sizeof(*ret), by_time);
	return n;
}

static void add_series(struct tm_analysis *a, const char *name,
		       const struct tm_ledger_sample **sample, size_t n, size_t offset)
{
	struct tm_doc_series *s = tm_document_add(a->doc, TM_DOC_SERIES);

	s->name = tm_document_text(a->doc, name);
	for (size_t i = 0; i < n; i++) {
		uint64_t value;

		if (i > 0 && sample[i]->at_ms == sample[i - 1]->at_ms)
			continue;
		memcpy(&value, (const char *)sample[i] + offset, sizeof(value));
		tm_document_push_real(a->doc, &s->values, (double)value);
	}
}

static void add_timeline(struct tm_analysis *a)
{
	const struct tm_ledger_sample **sample =
		tm_document_alloc(a->doc, TM_LEDGER_SAMPLES * sizeof(*sample));
	size_t n = pick_samples(a, sample);
	struct tm_doc_timeline *t = &a->doc->timeline;
	char name[64];

	if (n == 0)
		return;
	t->step_s = 1;
	for (size_t i = 0; i < n; i++) {
		if (i > 0 && sample[i]->at_ms == sample[i - 1]->at_ms)
			continue;
		tm_document_push_real(a->doc, &t->t,
				      (double)tm_ledger_unix_ns(a->ledger, sample[i]->at_ms) / 1e9);
	}
	add_series(a, "rss", sample, n, offsetof(struct tm_ledger_sample, rss_bytes));
	add_series(a, "live", sample, n, offsetof(struct tm_ledger_sample, live_bytes));
	add_series(a, "cached", sample, n, offsetof(struct tm_ledger_sample, cached_bytes));
	for (unsigned tier = 1; tier < TM_LEDGER_TIERS; tier++) {
		if ((a->ledger->header.features & TM_LEDGER_HAS_TIERS) == 0)
			break;
		snprintf(name, sizeof(name), "tier.%s.live", tm_document_tier_name(tier));
		add_series(a, name, sample, n,
			   offsetof(struct tm_ledger_sample, live_bytes) + tier * sizeof(uint64_t));
	}
	if (a->ledger->header.sessions)
		add_series(a, "sessions", sample, n, offsetof(struct tm_ledger_sample, sessions));
	if (a->ledger->header.tokens)
		add_series(a, "tokens", sample, n, offsetof(struct tm_ledger_sample, tokens));
	if (a->ledger->header.gpu_rows)
		add_series(a, "gpu.used", sample, n, offsetof(struct tm_ledger_sample, gpu_bytes));
}

/* --- events ----------------------------------------------------------------------------------- */

static const char *event_name(uint16_t kind)
{
	switch (kind) {
	case TM_LEDGER_OUT_OF_MEMORY: return "out of memory";
	case TM_LEDGER_GIVE_BACK: return "given back";
	case TM_LEDGER_TIER_CEILING: return "tier's ceiling";
	case TM_LEDGER_POOL_EXHAUSTED: return "pool exhausted";
	case TM_LEDGER_LIMIT_NEAR: return "near the memory limit";
	case TM_LEDGER_LEDGER_FULL: return "ledger full";
	case TM_LEDGER_FORKED: return "forked";
	case TM_LEDGER_SCANNED: return "scanned for leaks";
	case TM_LEDGER_PHASE: return "phase";
	case TM_LEDGER_MARK: return "mark";
	default: return "unknown";
	}
}

/* Text for an event's two numbers. */
static const char *event_text(struct tm_analysis *a, const struct tm_ledger_event *e)
{
	const char *tier = tm_document_tier_name(tier_of(e->tier));
	char bytes[24], more[24], numbers[100], times[40] = "";

	tm_fmt_bytes(bytes, sizeof(bytes), e->a);
	tm_fmt_bytes(more, sizeof(more), e->b);
	switch (e->kind) {
	case TM_LEDGER_SCANNED:
		snprintf(numbers, sizeof(numbers), "%llu blocks, %s, that nothing points to",
			 (unsigned long long)e->a, more);
		break;
	case TM_LEDGER_POOL_EXHAUSTED:
		snprintf(numbers, sizeof(numbers), "%llu blocks of %s, all in use",
			 (unsigned long long)e->b, bytes);
		break;
	case TM_LEDGER_OUT_OF_MEMORY:
	case TM_LEDGER_TIER_CEILING:
		snprintf(numbers, sizeof(numbers), "a request of %s", bytes);
		break;
	default:
		snprintf(numbers, sizeof(numbers), "%llu, %llu", (unsigned long long)e->a,
			 (unsigned long long)e->b);
	}
	if (e->count > 1)
		snprintf(times, sizeof(times), ", %u times within a second", e->count);
	return tm_document_format(a->doc, "%s%s%s%s", numbers, e->tier ? ", tier " : "",
				  e->tier ? tier : "", times);
}

static void add_events(struct tm_analysis *a)
{
	const struct tm_ledger_event *ring = tm_ledger_at(a->ledger, TM_LEDGER_EVENTS_AT);
	uint64_t end = a->ledger->header.events;
	uint64_t begin = end > EVENTS_SHOWN ? end - EVENTS_SHOWN : 0;

	for (uint64_t n = begin; n < end; n++) {
		const struct tm_ledger_event *e = &ring[n % TM_LEDGER_EVENTS];

		if (e->seq != n + 1)
			continue;
		struct tm_doc_event *row = tm_document_add(a->doc, TM_DOC_EVENTS);
		row->at_unix_ns = tm_ledger_unix_ns(a->ledger, e->at_ms);
		row->kind = event_name(e->kind);
		row->text = event_text(a, e);
	}
}

/* --- decisions -------------------------------------------------------------------------------- */

static enum tm_doc_authority authority_of(uint8_t authority)
{
	switch (authority) {
	case TM_LEDGER_BY_SIZE: return TM_DOC_BY_SIZE;
	case TM_LEDGER_BY_PROFILE: return TM_DOC_BY_PROFILE;
	case TM_LEDGER_BY_LEARNING: return TM_DOC_BY_LEARNED;
	case TM_LEDGER_BY_RULE: return TM_DOC_BY_RULE;
	case TM_LEDGER_BY_PHASE: return TM_DOC_BY_PHASE;
	case TM_LEDGER_BY_CALLER: return TM_DOC_BY_CALLER;
	default: return TM_DOC_BY_DEFAULT;
	}
}

static void add_decisions(struct tm_analysis *a)
{
	const struct tm_ledger_decision *d = tm_ledger_at(a->ledger, TM_LEDGER_DECISIONS_AT);

	for (uint32_t i = 0; i < a->ledger->header.decisions; i++, d++) {
		const struct tm_analysis_key *key = tm_analysis_key(a, d->site, d->height);

		/* Height 0 is the whole address. */
		for (; d->site && key->address == d->site; key++) {
			struct tm_doc_site *s = &a->doc->sites.at[key->site];

			if (d->height && key->height != d->height)
				break;
			s->authority = authority_of(d->authority);
			if (s->tier == 0)
				s->tier = tier_of(d->tier);
		}
	}
}

/* Adds the exact lifetimes of sites, if the process kept them. */
static void add_lives(struct tm_analysis *a)
{
	const struct tm_ledger_lives *l = tm_ledger_at(a->ledger, TM_LEDGER_LIVES_AT);

	for (uint32_t i = 0; i < a->ledger->header.lives; i++, l++) {
		const struct tm_analysis_key *key = tm_analysis_key(a, l->site, l->height);
		unsigned used = TM_ARRAY_LEN(l->by_s);

		if (l->site == 0 || key->address != l->site || key->height != l->height)
			continue;
		struct tm_doc_site *s = &a->doc->sites.at[key->site];
		if (s->life_hist_log2s.count)
			continue;
		while (used > 0 && l->by_s[used - 1] == 0)
			used--;
		for (unsigned k = 0; k < used; k++)
			tm_document_push_number(a->doc, &s->life_hist_log2s, l->by_s[k]);
	}
}

void tm_analysis_add_tables(struct tm_analysis *a)
{
	add_lives(a);
	add_sizes(a);
	add_pools(a);
	add_timeline(a);
	add_events(a);
	add_decisions(a);
}
