/* SPDX-License-Identifier: MIT */
/* The account in a ledger: merges the rows of all heaps by key and counts entries. See ledger.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/ledger/ledger.h"

#define NO_SITE 0u /* index of the site without a name */
#define SPAN_BYTES_MAX ((uint64_t)16 << 20)

/* Hash table of sites by key, open addressing; 0 is free, else index + 1. */
struct table {
	uint32_t *slot;
	size_t size; /* a power of two */
};

static size_t hash(uint64_t address, uint32_t height)
{
	return (size_t)((address * UINT64_C(0x9e3779b97f4a7c15) + height) *
				UINT64_C(0xff51afd7ed558ccd) >>
			17);
}

static int grow_table(struct tm_ledger *l, struct table *t)
{
	size_t size = t->size ? t->size * 2 : 8192;
	uint32_t *slot = calloc(size, sizeof(*slot));
	struct tm_ledger_site *sites = realloc(l->sites, size / 2 * sizeof(*sites));

	if (sites != NULL)
		l->sites = sites;
	if (slot == NULL || sites == NULL) {
		free(slot);
		return -ENOMEM;
	}
	free(t->slot);
	*t = (struct table){slot, size};
	for (size_t i = 0; i < l->site_count; i++) {
		size_t at = hash(l->sites[i].address, l->sites[i].height) & (size - 1);

		while (slot[at] != 0)
			at = (at + 1) & (size - 1);
		slot[at] = (uint32_t)i + 1;
	}
	return 0;
}

static int site_of(struct tm_ledger *l, struct table *t, uint64_t address, uint32_t height,
		   uint32_t *ret_index)
{
	if (l->site_count * 2 + 2 >= t->size && grow_table(l, t) != 0)
		return -ENOMEM;
	size_t at = hash(address, height) & (t->size - 1);

	for (; t->slot[at] != 0; at = (at + 1) & (t->size - 1)) {
		const struct tm_ledger_site *s = &l->sites[t->slot[at] - 1];

		if (s->address == address && s->height == height) {
			*ret_index = t->slot[at] - 1;
			return 0;
		}
	}
	struct tm_ledger_site *s = &l->sites[l->site_count];
	memset(s, 0, sizeof(*s));
	s->address = address;
	s->height = height;
	s->size_min = UINT64_MAX;
	t->slot[at] = (uint32_t)++l->site_count;
	*ret_index = t->slot[at] - 1;
	return 0;
}

static int add_heap(struct tm_ledger *l, struct table *t, uint64_t heap)
{
	const struct tm_ledger_row *row =
		tm_ledger_at(l, TM_LEDGER_ROWS_AT + heap * TM_LEDGER_ROWS_STRIDE);

	/* Rows are assigned in order; row 0 has no key. */
	for (unsigned n = 0; n < TM_LEDGER_ROWS && (n == 0 || row[n].key != 0); n++) {
		uint32_t index = NO_SITE;

		if (n != 0 && site_of(l, t, row[n].site, row[n].height, &index) != 0)
			return -ENOMEM;
		l->row_site[heap * TM_LEDGER_ROWS + n] = index;
		l->sites[index].objects += row[n].objects;
		l->sites[index].bytes += row[n].bytes;
	}
	return 0;
}

static bool make_extent(struct tm_ledger *l, uint64_t n, const struct tm_ledger_granule *g,
			struct tm_ledger_extent *ret_extent)
{
	uint64_t entry_bytes = g->kind == TM_LEDGER_SMALL ? 3 : 8;

	*ret_extent = (struct tm_ledger_extent){
		.granule = g,
		.address = l->header.zone_base + (n << 16),
		.tier = g->tier < TM_LEDGER_TIERS ? g->tier : 0,
		.slots = g->slots,
	};
	switch (g->kind) {
	case TM_LEDGER_SMALL:
	case TM_LEDGER_MEDIUM:
		ret_extent->bytes = (uint64_t)g->slots * g->slot_bytes;
		return g->first <= g->slots && g->slot_bytes != 0 && g->slot_bytes <= 65536 &&
		       ret_extent->bytes <= SPAN_BYTES_MAX &&
		       g->at <= TM_LEDGER_SIDES_BYTES - g->slots * entry_bytes;
	case TM_LEDGER_BLOCK:
		ret_extent->address += (uint64_t)(g->first & 15) << 12;
		/* The block's pages, or, if they are not recorded, those of the request. */
		ret_extent->bytes = (uint64_t)g->slot_bytes << 12;
		if (ret_extent->bytes < g->at)
			ret_extent->bytes = (g->at + 4095) & ~UINT64_C(4095);
		return g->at < UINT64_C(1) << 47;
	default: return false;
	}
}

static bool verdict_bit(const struct tm_ledger *l, enum tm_ledger_verdict which, uint64_t bit)
{
	const unsigned char *map =
		tm_ledger_at(l, TM_LEDGER_VERDICTS_AT + (uint64_t)which * TM_LEDGER_VERDICT_STRIDE);

	return map[bit / 8] >> (bit % 8) & 1;
}

static uint32_t verdicts(const struct tm_ledger *l, uint64_t bit)
{
	uint32_t bits = 0;

	if (l->header.scan_passes == 0)
		return 0;
	for (unsigned which = TM_LEDGER_ONCE; which <= TM_LEDGER_STALE; which++)
		bits |= (uint32_t)verdict_bit(l, which, bit) << which;
	return bits;
}

static struct tm_ledger_site *site_at(const struct tm_ledger *l, uint64_t heap, unsigned id)
{
	if (heap >= l->header.heaps)
		return &l->sites[NO_SITE];
	return &l->sites[l->row_site[heap * TM_LEDGER_ROWS + (id >> 4)]];
}

static uint64_t birth_at(const struct tm_ledger *l, uint64_t offset)
{
	uint64_t ns = 0;

	if (l->header.features & TM_LEDGER_HAS_BIRTHS)
		memcpy(&ns, tm_ledger_at(l, offset), sizeof(ns));
	return ns;
}

/* Birth of an object in a slot, found by the place of its entry. */
static uint64_t slot_birth(const struct tm_ledger *l, uint64_t at)
{
	uint64_t stride = at / TM_LEDGER_BIRTHS_SIDES;

	if (stride >= TM_LEDGER_BIRTHS_STRIDES)
		return 0;
	return birth_at(l, TM_LEDGER_BIRTHS_AT + stride * TM_LEDGER_BIRTHS_STRIDE +
				   at % TM_LEDGER_BIRTHS_SIDES / 3 * 8);
}

/*
 * Whether a span is an arena, whose objects take several slots: these are smaller than in any other
 * span with such entries.
 */
static bool is_arena(const struct tm_ledger_granule *g)
{
	return g->kind == TM_LEDGER_MEDIUM && g->slot_bytes <= TM_LEDGER_LINE_MAX;
}

/* Rounds to an eighth of a power of two, like other slots, and then to whole lines. */
static uint64_t arena_slot_bytes(uint64_t requested, uint64_t line)
{
	uint64_t step = line / 2;

	while (step * 16 < requested)
		step *= 2;
	requested = (requested + step - 1) / step * step;
	return (requested + line - 1) / line * line;
}

static void walk_span(struct tm_ledger *l, const struct tm_ledger_extent *x,
		      tm_ledger_see_object *see, void *ctx)
{
	const struct tm_ledger_granule *g = x->granule;
	bool small = g->kind == TM_LEDGER_SMALL;
	uint64_t entry_bytes = small ? 3 : 8;
	const unsigned char *side = tm_ledger_at(l, TM_LEDGER_SIDES_AT + g->at);

	for (uint32_t i = g->first; i < g->slots; i++) {
		const unsigned char *e = side + i * entry_bytes;
		unsigned id = (unsigned)(e[0] | e[1] << 8);
		struct tm_ledger_object o = {
			.extent = x,
			.address = x->address + (uint64_t)i * g->slot_bytes,
			.slot_bytes = g->slot_bytes,
			.age = tm_ledger_age(l->header.epoch, e[2]),
			.epoch8 = e[2],
		};
		if (id == TM_LEDGER_ID_FREE)
			continue;
		if (small) {
			o.bytes = g->slot_bytes - ((16 - (id & 15)) & 15);
		} else {
			memcpy(&o.bytes, e, sizeof(o.bytes));
			o.bytes >>= 24;
			if (is_arena(g))
				o.slot_bytes = arena_slot_bytes(o.bytes, g->slot_bytes);
			if (o.bytes > o.slot_bytes || i + o.slot_bytes / g->slot_bytes > g->slots) {
				l->torn++;
				continue;
			}
		}
		o.site = site_at(l, g->heap, id);
		o.birth_ns = slot_birth(l, g->at + i * entry_bytes);
		o.verdict = verdicts(l, (g->at + i * entry_bytes) / 3);
		see(ctx, &o);
	}
}

static void walk_block(struct tm_ledger *l, const struct tm_ledger_extent *x, uint64_t n,
		       tm_ledger_see_object *see, void *ctx)
{
	const struct tm_ledger_granule *g = x->granule;
	const struct tm_ledger_object o = {
		.extent = x,
		.site = site_at(l, g->heap, g->id),
		.address = x->address,
		.bytes = g->at,
		.slot_bytes = x->bytes,
		.age = tm_ledger_age(l->header.epoch, g->epoch8 & 0xff),
		.epoch8 = (uint8_t)g->epoch8,
		.birth_ns = birth_at(l, TM_LEDGER_BLOCK_BIRTHS_AT + n * 8),
		.verdict = verdicts(l, TM_LEDGER_VERDICT_BLOCKS * 8 + n),
	};

	see(ctx, &o);
}

void tm_ledger_walk(struct tm_ledger *l, tm_ledger_see_extent *see_extent,
		    tm_ledger_see_object *see_object, void *ctx)
{
	const struct tm_ledger_granule *g = tm_ledger_at(l, TM_LEDGER_GRANULES_AT);
	struct tm_ledger_extent x;

	for (uint64_t n = 0, next; n < l->header.granules; n = next) {
		for (next = n + 1; next < l->header.granules; next++) {
			if (g[next].kind != TM_LEDGER_NOTHING)
				break;
		}
		if (g[n].kind == TM_LEDGER_NOTHING)
			continue;
		/*
		 * It ends before the next extent begins; the last one may extend beyond the
		 * records.
		 */
		uint64_t room = next < l->header.granules ? next - n + 1 : TM_LEDGER_GRANULES - n;
		if (!make_extent(l, n, &g[n], &x) || x.bytes > room << 16) {
			l->torn++;
			continue;
		}
		if (see_extent)
			see_extent(ctx, &x);
		if (see_object && g[n].kind == TM_LEDGER_BLOCK)
			walk_block(l, &x, n, see_object, ctx);
		else if (see_object)
			walk_span(l, &x, see_object, ctx);
	}
}

/*
 * Time of birth of an object of that age, in the middle of its window. Windows take longer than
 * requested if a census is slow or late; the ring has their lengths. Older windows have the average
 * length of the run.
 */
static uint64_t age_ms(const struct tm_ledger *l, uint32_t age)
{
	const struct tm_ledger_window *window = tm_ledger_at(l, TM_LEDGER_WINDOWS_AT);
	const struct tm_ledger_header *h = &l->header;
	uint64_t run_ms = l->now_ms > h->begun_ms ? l->now_ms - h->begun_ms : 0;
	uint32_t epoch = h->epoch;

	if (age == 0)
		return l->now_ms > h->epoch_begun_ms ? (l->now_ms - h->epoch_begun_ms) / 2 : 0;
	if (age < epoch) {
		const struct tm_ledger_window *w = &window[(epoch - age - 1) % TM_LEDGER_WINDOWS];

		if (w->seq == epoch - age && w->ended_ms >= w->begun_ms && l->now_ms > w->ended_ms)
			return l->now_ms - w->ended_ms + (w->ended_ms - w->begun_ms) / 2;
	}
	/* Older than an entry can express, or in a window that is no longer in the ring. */
	uint64_t known = age == UINT32_MAX ? 255 : age;
	return epoch > 1 ? run_ms * (known < epoch ? known : epoch) / epoch
			 : known * (h->window_ms ? h->window_ms : 60000);
}

/* Age in seconds; exact if the ledger has births, else to the window. */
static uint64_t age_seconds(const struct tm_ledger *l, const struct tm_ledger_object *o)
{
	uint64_t now_ns = l->now_ms * 1000000;

	if (o->birth_ns != 0)
		return now_ns > o->birth_ns ? (now_ns - o->birth_ns) / 1000000000 : 0;
	return age_ms(l, o->age) / 1000;
}

/* Index of the age bucket. */
static unsigned age_bucket(const struct tm_ledger *l, const struct tm_ledger_object *o)
{
	unsigned log2 = 63u - (unsigned)__builtin_clzll(age_seconds(l, o) + 1);

	return log2 < TM_LEDGER_AGES ? log2 : TM_LEDGER_AGES - 1;
}

static bool is_older(const struct tm_ledger *l, const struct tm_ledger_object *o)
{
	if (o->birth_ns != 0)
		return o->birth_ns / 1000000 + l->since_ms < l->now_ms;
	return o->age == UINT32_MAX || age_ms(l, o->age) > l->since_ms;
}

static void judge(struct tm_ledger_judged *j, const struct tm_ledger_object *o,
		  enum tm_ledger_verdict which)
{
	uint64_t on = o->verdict >> which & 1;

	j->objects += on;
	j->bytes += on * o->bytes;
}

static void count_object(void *ctx, const struct tm_ledger_object *o)
{
	struct tm_ledger *l = ctx;
	struct tm_ledger_site *s = o->site;
	unsigned bucket = age_bucket(l, o);

	l->total.live_objects++;
	l->total.live_bytes += o->bytes;
	l->total.slot_bytes += o->slot_bytes;
	if (o->age != UINT32_MAX && o->age + l->header.scan_epoch <= l->header.epoch) {
		l->young.objects++;
		l->young.bytes += o->bytes;
	}
	s->all_objects++;
	s->all_bytes += o->bytes;
	if (l->since_ms && is_older(l, o))
		return;
	s->live_objects++;
	s->live_bytes += o->bytes;
	s->slot_bytes += o->slot_bytes;
	s->tier_bytes[o->extent->tier] += o->bytes;
	s->age_objects[bucket]++;
	s->age_bytes[bucket] += o->bytes;
	s->epochs[o->epoch8 / 64] |= UINT64_C(1) << (o->epoch8 % 64);
	if (o->bytes < s->size_min)
		s->size_min = o->bytes;
	if (o->bytes > s->size_max)
		s->size_max = o->bytes;
	if (o->verdict == 0)
		return;
	judge(&s->once, o, TM_LEDGER_ONCE);
	judge(&s->twice, o, TM_LEDGER_TWICE);
	judge(&s->stale, o, TM_LEDGER_STALE);
	if (o->verdict >> TM_LEDGER_TWICE & 1)
		judge(&s->indirect, o, TM_LEDGER_INDIRECT);
}

static int by_live(const void *a, const void *b)
{
	const struct tm_ledger_site *x = a, *y = b;

	if (x->live_bytes != y->live_bytes)
		return x->live_bytes < y->live_bytes ? 1 : -1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->height < y->height ? -1 : x->height > y->height;
}

/* Sorts the sites, and adapts the rows' indices to them. */
static int sort_sites(struct tm_ledger *l)
{
	uint32_t *moved = malloc((l->site_count + 1) * sizeof(*moved));
	size_t rows = (size_t)l->header.heaps * TM_LEDGER_ROWS;

	if (moved == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < l->site_count; i++)
		/* used temporarily for the old index; 0 is no tier */
		l->sites[i].tier_bytes[0] = i;
	qsort(l->sites, l->site_count, sizeof(*l->sites), by_live);
	for (size_t i = 0; i < l->site_count; i++) {
		moved[l->sites[i].tier_bytes[0]] = (uint32_t)i;
		l->sites[i].tier_bytes[0] = 0;
	}
	for (size_t i = 0; i < rows; i++)
		l->row_site[i] = moved[l->row_site[i]];
	free(moved);
	return 0;
}

static void sum_up(struct tm_ledger *l)
{
	for (size_t i = 0; i < l->site_count; i++) {
		struct tm_ledger_site *s = &l->sites[i];

		s->tier_bytes[0] = s->live_bytes;
		for (uint8_t tier = 1; tier < TM_LEDGER_TIERS; tier++)
			s->tier_bytes[0] -= s->tier_bytes[tier];
		for (uint8_t tier = 0; tier < TM_LEDGER_TIERS; tier++) {
			if (s->tier_bytes[tier] > s->tier_bytes[s->tier])
				s->tier = tier;
			l->total.tier_bytes[tier] += s->tier_bytes[tier];
		}
		l->total.objects += s->objects;
		l->total.bytes += s->bytes;
		for (unsigned age = 0; age < TM_LEDGER_AGES; age++) {
			l->total.age_objects[age] += s->age_objects[age];
			l->total.age_bytes[age] += s->age_bytes[age];
		}
	}
}

/* Drops empty sites at the end, such as the nameless one if nothing needs it. */
static void drop_last_empty(struct tm_ledger *l)
{
	while (l->site_count > 1 && l->sites[l->site_count - 1].objects == 0 &&
	       l->sites[l->site_count - 1].live_objects == 0)
		l->site_count--;
}

int tm_ledger_count_sites(struct tm_ledger *l)
{
	struct table t = {0};
	uint32_t none;
	int rc = -ENOMEM;

	l->row_site = calloc(l->header.heaps * TM_LEDGER_ROWS + 1, sizeof(*l->row_site));
	if (l->row_site != NULL)
		rc = site_of(l, &t, 0, 0, &none);
	for (uint64_t heap = 0; rc == 0 && heap < l->header.heaps; heap++)
		rc = add_heap(l, &t, heap);
	free(t.slot);
	if (rc != 0)
		return rc;
	tm_ledger_walk(l, NULL, count_object, l);
	rc = sort_sites(l);
	if (rc == 0) {
		sum_up(l);
		drop_last_empty(l);
	}
	return rc;
}
