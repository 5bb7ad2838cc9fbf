/* SPDX-License-Identifier: MIT */
/*
 * Fragmentation: the cost of live blocks beyond the bytes requested, by tier, size class and 2 MiB
 * page, and the sites whose few old objects keep those pages. See analysis.h.
 *
 *   internal  rounding of requests up to slots
 *   external  free slots on pages of spans that hold something
 *   pinned    the non-live bytes of a page that is less than half live; charged to the sites of its
 *             oldest survivors, by their bytes: without them the page could be given back
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analysis/analysis.h"

#define UNIT_BYTES ((uint64_t)2 << 20)
#define UNIT_SHIFT 21
#define PAGE_SHIFT 12
#define SPARSE_BYTES (UNIT_BYTES / 2)
#define PAGES_SHOWN 65536u
/* pinned bytes from which a rule is suggested: two pages */
#define SUGGEST_BYTES ((uint64_t)4 << 20)
#define SUGGESTIONS_MAX 8u
#define MOVED_FROM ((uint64_t)1 << 10) /* rules do not choose the tier of smaller blocks */

struct unit {
	uint64_t live_bytes; /* slots */
	uint64_t tier_bytes[TM_LEDGER_TIERS];
	uint64_t old_bytes;    /* bytes of its oldest survivors */
	uint64_t pinned_bytes; /* bytes charged to the site with most */
	uint64_t pages[8];     /* bit set: 4 KiB pages that hold something live */
	uint32_t oldest;       /* age of its oldest survivors, in windows */
	uint32_t site;         /* the site charged with most */
	uint32_t sites;
	uint32_t last_site;
};

/* Totals of the slots of one size in one tier. */
struct class_sum {
	uint32_t slot_bytes;
	uint8_t tier;
	uint64_t objects, bytes, slot_sum, spans, span_bytes;
	uint64_t fill[10];
};

struct frag {
	struct tm_analysis *a;
	struct unit *unit;
	size_t units;
	struct class_sum *class;
	size_t classes, class_room;
	struct tm_ledger_extent extent; /* extent of the current walk */
	uint64_t extent_live, extent_objects, extent_bytes;
	uint64_t span_bytes[TM_LEDGER_TIERS], slot_bytes[TM_LEDGER_TIERS],
		live_bytes[TM_LEDGER_TIERS], objects[TM_LEDGER_TIERS], idle_bytes[TM_LEDGER_TIERS];
	uint64_t *pinned; /* by site */
	/* Of the unit being walked: bytes of old objects by site. */
	size_t charged_unit;
	struct charge {
		uint32_t site;
		uint64_t bytes;
	} * charge;
	size_t charges, charge_room;
};

static size_t unit_of(const struct frag *f, uint64_t address)
{
	return (size_t)((address - f->a->ledger->header.zone_base) >> UNIT_SHIFT);
}

/* --- first walk: what lives where ------------------------------------------------------------- */

static struct class_sum *class_of(struct frag *f, uint32_t slot_bytes, uint8_t tier)
{
	for (size_t i = 0; i < f->classes; i++) {
		if (f->class[i].slot_bytes == slot_bytes && f->class[i].tier == tier)
			return &f->class[i];
	}
	if (f->classes == f->class_room) {
		size_t room = f->class_room ? 2 * f->class_room : 128;
		struct class_sum *wider = tm_document_alloc(f->a->doc, room * sizeof(*wider));

		if (f->classes)
			memcpy(wider, f->class, f->classes * sizeof(*wider));
		f->class = wider;
		f->class_room = room;
	}
	f->class[f->classes] = (struct class_sum){.slot_bytes = slot_bytes, .tier = tier};
	return &f->class[f->classes++];
}

/* Bytes of the pages that a span has touched; the whole size of a block. */
static uint64_t touched_bytes(const struct tm_ledger_extent *x)
{
	const struct tm_ledger_granule *g = x->granule;

	if (g->kind == TM_LEDGER_BLOCK)
		return x->bytes;
	uint64_t carved = (uint64_t)(g->slots - g->first) * g->slot_bytes;
	return (carved + 4095) & ~UINT64_C(4095);
}

static void keep_extent(struct tm_analysis *a, const struct tm_ledger_extent *x)
{
	if (a->extent_count == a->extent_room) {
		size_t room = a->extent_room ? 2 * a->extent_room : 1024;
		struct tm_analysis_extent *wider = tm_document_alloc(a->doc, room * sizeof(*wider));

		if (a->extent_count)
			memcpy(wider, a->extents, a->extent_count * sizeof(*wider));
		a->extents = wider;
		a->extent_room = room;
	}
	a->extents[a->extent_count++] = (struct tm_analysis_extent){x->address, x->bytes};
}

static void end_extent(struct frag *f)
{
	const struct tm_ledger_extent *x = &f->extent;

	if (x->granule == NULL)
		return;
	uint64_t bytes = touched_bytes(x);
	bool span = x->granule->kind != TM_LEDGER_BLOCK;

	if (f->extent_objects == 0) {
		f->idle_bytes[x->tier] += bytes;
		return;
	}
	keep_extent(f->a, x);
	f->span_bytes[x->tier] += bytes;
	f->slot_bytes[x->tier] += f->extent_live;
	f->live_bytes[x->tier] += f->extent_bytes;
	f->objects[x->tier] += f->extent_objects;
	/* Class 0 is the blocks of whole pages. */
	struct class_sum *c = class_of(f, span ? x->granule->slot_bytes : 0, x->tier);
	c->objects += f->extent_objects;
	c->bytes += f->extent_bytes;
	c->slot_sum += f->extent_live;
	c->spans++;
	c->span_bytes += bytes;
	if (span && bytes)
		c->fill[f->extent_live >= bytes ? 9 : f->extent_live * 10 / bytes]++;
}

/* The last block may extend far beyond the last granule record. */
static void see_end(void *ctx, const struct tm_ledger_extent *x)
{
	struct frag *f = ctx;
	size_t n = unit_of(f, x->address + x->bytes) + 1;

	if (n > f->units)
		f->units = n;
}

static void see_extent(void *ctx, const struct tm_ledger_extent *x)
{
	struct frag *f = ctx;

	end_extent(f);
	f->extent = *x;
	f->extent_live = f->extent_objects = f->extent_bytes = 0;
}

static void add_to_unit(struct frag *f, size_t n, const struct tm_ledger_object *o, uint64_t from,
			uint64_t to)
{
	struct unit *u = &f->unit[n];
	uint32_t site = (uint32_t)(o->site - f->a->ledger->sites) + 1;

	u->live_bytes += to - from;
	u->tier_bytes[o->extent->tier] += to - from;
	if (o->age != UINT32_MAX && o->age > u->oldest)
		u->oldest = o->age;
	if (u->last_site != site) {
		u->sites++; /* an approximation: sites may alternate */
		u->last_site = site;
	}
	for (uint64_t page = from >> PAGE_SHIFT; page <= (to - 1) >> PAGE_SHIFT; page++)
		u->pages[page % 512 / 64] |= UINT64_C(1) << (page % 64);
}

/* Calls "see" for each unit that the object lies in, with the bytes that lie there. */
static void by_unit(struct frag *f, const struct tm_ledger_object *o,
		    void (*see)(struct frag *, size_t, const struct tm_ledger_object *, uint64_t,
				uint64_t))
{
	uint64_t from = o->address, end = o->address + o->slot_bytes;

	while (from < end) {
		uint64_t to = ((from >> UNIT_SHIFT) + 1) << UNIT_SHIFT;
		size_t n = unit_of(f, from);

		if (to > end)
			to = end;
		if (n < f->units)
			see(f, n, o, from, to);
		from = to;
	}
}

static void see_object(void *ctx, const struct tm_ledger_object *o)
{
	struct frag *f = ctx;

	f->extent_live += o->slot_bytes;
	f->extent_bytes += o->bytes;
	f->extent_objects++;
	by_unit(f, o, add_to_unit);
}

/* --- second and third walk: who holds sparse pages -------------------------------------------- */

static bool is_old(const struct unit *u, const struct tm_ledger_object *o)
{
	return o->age >= u->oldest - u->oldest / 4;
}

static void add_old(struct frag *f, size_t n, const struct tm_ledger_object *o, uint64_t from,
		    uint64_t to)
{
	if (is_old(&f->unit[n], o))
		f->unit[n].old_bytes += to - from;
}

static void see_old(void *ctx, const struct tm_ledger_object *o)
{
	by_unit(ctx, o, add_old);
}

static bool is_sparse(const struct unit *u)
{
	return u->live_bytes > 0 && u->live_bytes < SPARSE_BYTES;
}

static void end_charges(struct frag *f)
{
	struct unit *u = &f->unit[f->charged_unit];
	uint64_t waste = UNIT_BYTES - u->live_bytes;

	for (size_t i = 0; i < f->charges; i++) {
		const struct charge *c = &f->charge[i];

		f->pinned[c->site] +=
			(uint64_t)((double)waste * (double)c->bytes / (double)u->old_bytes);
		if (c->bytes > u->pinned_bytes) {
			u->pinned_bytes = c->bytes;
			u->site = c->site;
		}
	}
	f->charges = 0;
}

static void add_charge(struct frag *f, size_t n, const struct tm_ledger_object *o, uint64_t from,
		       uint64_t to)
{
	uint32_t site = (uint32_t)(o->site - f->a->ledger->sites);

	if (n != f->charged_unit)
		end_charges(f);
	f->charged_unit = n;
	if (!is_sparse(&f->unit[n]) || !is_old(&f->unit[n], o))
		return;
	for (size_t i = 0; i < f->charges; i++) {
		if (f->charge[i].site == site) {
			f->charge[i].bytes += to - from;
			return;
		}
	}
	if (f->charges == f->charge_room) {
		size_t room = f->charge_room ? 2 * f->charge_room : 64;
		struct charge *wider = tm_document_alloc(f->a->doc, room * sizeof(*wider));

		if (f->charges)
			memcpy(wider, f->charge, f->charges * sizeof(*wider));
		f->charge = wider;
		f->charge_room = room;
	}
	f->charge[f->charges++] = (struct charge){site, to - from};
}

static void see_charge(void *ctx, const struct tm_ledger_object *o)
{
	by_unit(ctx, o, add_charge);
}

/* --- into the document ------------------------------------------------------------------------ */

static uint64_t longest_free(const struct unit *u)
{
	uint64_t longest = 0, run = 0;

	for (unsigned page = 0; page < 512; page++) {
		run = u->pages[page / 64] >> (page % 64) & 1 ? 0 : run + 1;
		if (run > longest)
			longest = run;
	}
	return longest << PAGE_SHIFT;
}

static uint8_t main_tier(const struct unit *u)
{
	uint8_t most = 0;

	for (uint8_t tier = 1; tier < TM_LEDGER_TIERS; tier++) {
		if (u->tier_bytes[tier] > u->tier_bytes[most])
			most = tier;
	}
	return most;
}

static void add_pages(struct frag *f)
{
	struct tm_document *doc = f->a->doc;
	uint64_t density[10] = {0}, longest[22] = {0};

	for (size_t n = 0; n < f->units; n++) {
		const struct unit *u = &f->unit[n];

		if (u->live_bytes == 0)
			continue;
		uint64_t free_run = longest_free(u);
		density[u->live_bytes >= UNIT_BYTES ? 9 : u->live_bytes * 10 / UNIT_BYTES]++;
		longest[free_run ? 63 - __builtin_clzll(free_run) : 0]++;
		if (doc->hugepages.pages.count >= PAGES_SHOWN)
			continue;
		struct tm_doc_page *page = tm_document_add(doc, TM_DOC_PAGES);
		page->addr = f->a->ledger->header.zone_base + ((uint64_t)n << UNIT_SHIFT);
		page->tier = main_tier(u);
		page->live_bytes = u->live_bytes;
		page->longest_free = free_run;
		page->sites = u->sites;
		if (u->pinned_bytes) {
			page->pinned_by = doc->sites.at[u->site].id;
			page->pinned_bytes = u->pinned_bytes;
		}
	}
	for (size_t i = 0; i < TM_ARRAY_LEN(density); i++)
		tm_document_push_number(doc, &doc->hugepages.density_hist, density[i]);
	for (size_t i = 0; i < TM_ARRAY_LEN(longest); i++)
		tm_document_push_number(doc, &doc->hugepages.longest_free_hist, longest[i]);
}

static int by_class(const void *a, const void *b)
{
	const struct class_sum *x = a, *y = b;

	if (x->tier != y->tier)
		return x->tier < y->tier ? -1 : 1;
	return x->slot_bytes < y->slot_bytes ? -1 : x->slot_bytes > y->slot_bytes;
}

static double share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

static void add_classes(struct frag *f)
{
	struct tm_document *doc = f->a->doc;

	if (f->classes)
		qsort(f->class, f->classes, sizeof(*f->class), by_class);
	for (size_t i = 0; i < f->classes; i++) {
		const struct class_sum *s = &f->class[i];
		struct tm_doc_class *c = tm_document_add(doc, TM_DOC_CLASSES);

		c->tier = s->tier;
		c->class_bytes = s->slot_bytes;
		c->live_objs = s->objects;
		c->req_bytes = s->bytes;
		c->spans = s->spans;
		c->span_bytes = s->span_bytes;
		c->internal = share(s->slot_sum - s->bytes, s->slot_sum);
		c->external = s->span_bytes > s->slot_sum
				      ? share(s->span_bytes - s->slot_sum, s->span_bytes)
				      : 0;
		for (size_t k = 0; s->slot_bytes && k < TM_ARRAY_LEN(s->fill); k++)
			tm_document_push_number(doc, &c->span_fill_hist, s->fill[k]);
	}
}

/* Share of a tier's bytes that lie on pages where that tier has most. */
static double purity(const struct frag *f, uint8_t tier)
{
	uint64_t own = 0, all = 0;

	for (size_t n = 0; n < f->units; n++) {
		all += f->unit[n].tier_bytes[tier];
		if (main_tier(&f->unit[n]) == tier)
			own += f->unit[n].tier_bytes[tier];
	}
	return all ? (double)own / (double)all : NAN;
}

static uint64_t sparse_units(const struct frag *f, uint8_t tier)
{
	uint64_t count = 0;

	for (size_t n = 0; n < f->units; n++)
		count += is_sparse(&f->unit[n]) && main_tier(&f->unit[n]) == tier;
	return count;
}

/*
 * Estimates the bytes saved by separating tiers: pages that would hold at least one of the tier's
 * objects if these lay at random among everything live at the peak, less the pages they hold now.
 */
static int64_t saved_by_tiers(const struct frag *f, uint8_t tier, uint64_t peak_bytes)
{
	double pages = (double)peak_bytes / 4096, objects = (double)f->objects[tier];

	if (pages < 1 || objects < 1)
		return 0;
	double pages_each = fmax(1, (double)f->slot_bytes[tier] / objects / 4096);
	double held = pages * (1 - exp(-objects * pages_each / pages)) * 4096;
	return (int64_t)held - (int64_t)f->span_bytes[tier];
}

static void add_tier(struct frag *f, uint8_t tier, bool apart)
{
	const struct tm_ledger_counters *c = &f->a->ledger->counters;
	struct tm_doc_tier_row *row = tm_document_add(f->a->doc, TM_DOC_TIERS);
	const uint64_t *words = c->tier[tier];

	row->tier = tier;
	row->live_req = f->live_bytes[tier];
	row->live_objs = f->objects[tier];
	row->slot = f->slot_bytes[tier];
	row->span = f->span_bytes[tier];
	row->cached = f->idle_bytes[tier];
	row->sparse_pages = sparse_units(f, tier);
	row->purity = purity(f, tier);
	row->refused = words[TM_LEDGER_TIER_refused]; /* updated at once, not with each sample */
	if (c->at_ms) {
		row->cached += words[TM_LEDGER_TIER_cached_bytes];
		row->peak_live = words[TM_LEDGER_TIER_peak_live_bytes];
		if (words[TM_LEDGER_TIER_resident_bytes])
			row->huge_cov = share(words[TM_LEDGER_TIER_huge_bytes],
					      words[TM_LEDGER_TIER_resident_bytes]);
	}
	if (row->live_req)
		row->blowup_now = share(row->span + row->cached, row->live_req);
	if (!apart && tm_analysis_knows_peak(c))
		row->blowup_peak = share(c->at_peak_rss, c->at_peak_live);
	if (apart)
		row->saved_bytes = saved_by_tiers(f, tier, c->at_peak_live);
	row->verdict = row->sparse_pages             ? "pages less than half live"
		       : row->cached > row->live_req ? "mostly cache, goes back when idle"
						     : "ok";
}

static void add_tiers(struct frag *f)
{
	bool apart = (f->a->ledger->header.features & TM_LEDGER_HAS_TIERS) != 0;

	for (uint8_t tier = 1; tier < TM_LEDGER_TIERS; tier++)
		apart |= f->objects[tier] != 0;
	for (uint8_t tier = 0; tier < TM_LEDGER_TIERS; tier++) {
		if (tier == 0 ? !apart || f->objects[0] : apart)
			add_tier(f, tier, apart);
	}
}

/* Whether a rule for the site's address would move its blocks, and mostly its own. */
static bool is_movable(const struct tm_ledger *l, const struct tm_ledger_site *s)
{
	uint64_t others = 0;

	for (size_t i = 0; i < l->site_count; i++) {
		if (l->sites[i].address == s->address)
			others += l->sites[i].bytes;
	}
	return s->size_max > MOVED_FROM && others - s->bytes <= s->bytes;
}

/*
 * Suggests a rule, which names the site as the rules file does, that moves a site's blocks out of
 * the tier whose pages it pins.
 */
static void suggest(struct frag *f, uint32_t site)
{
	struct tm_ledger *l = f->a->ledger;
	const struct tm_ledger_site *s = &l->sites[site];
	const struct tm_ledger_module *m = tm_ledger_module(l, s->address, l->header.epoch);
	bool is_persistent = f->a->doc->sites.at[site].tier == TM_DOC_PERSISTENT;
	char id[2 * sizeof(m->build_id) + 1];

	/*
	 * A Python line has the same C call as every other line: it has no module here, so no rule
	 * is suggested.
	 */
	if (m == NULL || m->build_id_bytes == 0 || m->build_id_bytes > sizeof(m->build_id))
		return;
	if (!is_movable(l, s))
		return;
	for (uint32_t i = 0; i < m->build_id_bytes; i++)
		snprintf(id + 2 * i, 3, "%02x", m->build_id[i]);
	struct tm_doc_suggestion *rule = tm_document_add(f->a->doc, TM_DOC_SUGGESTIONS);
	rule->rule = tm_document_format(f->a->doc, "site=%s+0x%llx -> tier=%s", id,
					(unsigned long long)(s->address - m->base),
					is_persistent ? "session" : "persistent");
	rule->why = tm_document_format(f->a->doc, "old objects of %s hold pages of 2 MiB",
				       f->a->doc->sites.at[site].id);
	rule->saves_bytes = f->pinned[site];
}

static void add_pinned(struct frag *f)
{
	struct tm_document *doc = f->a->doc;

	for (size_t i = 0; i < doc->sites.count; i++)
		doc->sites.at[i].frag_pinned_bytes = f->pinned[i];
	uint64_t below = UINT64_MAX;
	while (doc->suggestions.count < SUGGESTIONS_MAX) {
		uint32_t most = 0;
		uint64_t bytes = 0;

		for (uint32_t i = 0; i < doc->sites.count; i++) {
			if (f->pinned[i] > bytes && f->pinned[i] < below) {
				most = i;
				bytes = f->pinned[i];
			}
		}
		if (bytes < SUGGEST_BYTES)
			break;
		f->a->wants_symbols[most] = 1;
		suggest(f, most);
		below = bytes;
	}
}

void tm_analysis_find_fragments(struct tm_analysis *a)
{
	struct frag f = {.a = a};

	f.units = (size_t)(a->ledger->header.granules >> 5) + 1;
	tm_ledger_walk(a->ledger, see_end, NULL, &f);
	f.unit = tm_document_alloc(a->doc, f.units * sizeof(*f.unit));
	f.pinned = tm_document_alloc(a->doc, (a->doc->sites.count + 1) * sizeof(*f.pinned));
	tm_ledger_walk(a->ledger, see_extent, see_object, &f);
	end_extent(&f);
	tm_ledger_walk(a->ledger, NULL, see_old, &f);
	tm_ledger_walk(a->ledger, NULL, see_charge, &f);
	end_charges(&f);
	for (uint8_t tier = 0; tier < TM_LEDGER_TIERS; tier++) {
		a->span_bytes += f.span_bytes[tier];
		a->idle_bytes += f.idle_bytes[tier];
	}
	add_tiers(&f);
	add_classes(&f);
	add_pages(&f);
	add_pinned(&f);
}
