/* SPDX-License-Identifier: MIT */
/* decisions: see decisions.h. */
#include "shim/ledger/decisions.h"

#include "shim/base/bits.h"
#include "shim/base/ledger_format.h"
#include "shim/ledger/ledger.h"

#define TICKS 8u
#define SITES_A_TICK 4096u

static const struct tm_route *_Atomic followed;

static uint8_t authority_of(enum tm_authority authority)
{
	switch (authority) {
	case TM_AUTHORITY_SIZE: return TM_LEDGER_BY_SIZE;
	case TM_AUTHORITY_PHASE: return TM_LEDGER_BY_PHASE;
	case TM_AUTHORITY_LEARNED: return TM_LEDGER_BY_LEARNING;
	case TM_AUTHORITY_PROFILE: return TM_LEDGER_BY_PROFILE;
	case TM_AUTHORITY_RULE: return TM_LEDGER_BY_RULE;
	default: return TM_LEDGER_BY_DEFAULT;
	}
}

/* The record number n, counted in the header; NULL: no room. */
static struct tm_ledger_decision *slot(struct tm_ledger_header *header, uint32_t n)
{
	struct tm_ledger_decision *d;

	if (n >= TM_LEDGER_DECISIONS)
		return NULL;
	d = tm_ledger_area(TM_LEDGER_DECISIONS_AT + n * sizeof(*d), sizeof(*d));
	if (d != NULL && n >= header->decisions)
		__atomic_store_n(&header->decisions, n + 1, __ATOMIC_RELEASE);
	return d;
}

static void write_site(const struct tm_route *route, uint16_t site, struct tm_ledger_decision *to)
{
	const struct tm_site_record *r = &route->sites.record[site];
	struct tm_route_decision d = tm_route_look(route, site);
	uint64_t key = atomic_load_explicit(&r->key, memory_order_relaxed);
	uint16_t ruled = atomic_load_explicit(&r->ruled, memory_order_relaxed);

	to->tier = d.tier;
	to->authority = authority_of((enum tm_authority)d.authority);
	to->phase = (uint8_t)tm_phase_now(&route->phase);
	/* lines of a profile are no rules that a user wrote */
	to->rule = ruled && !route->rules->rule[ruled - 1].is_profile
			   ? (uint16_t)route->rules->rule[ruled - 1].line
			   : 0;
	to->size_log2 = r->level == TM_SITE_SIZED ? r->size_log2 : 0;
	to->flags = tm_sites_key_is_large(key) ? TM_LEDGER_DECIDES_LARGE : 0;
	to->objects = atomic_load_explicit(&r->born, memory_order_relaxed);
	to->short_lived = atomic_load_explicit(&r->shorts, memory_order_relaxed);
	to->long_lived = atomic_load_explicit(&r->longs, memory_order_relaxed);
	to->height = r->level == TM_SITE_COARSE ? 0 : r->height & 0xffff;
	to->site = r->return_address & UINT64_C(0xffffffffffff);
}

/* Rules that decided nothing, behind the sites; those that did since then are wiped. */
static void write_rules(const struct tm_route *route, struct tm_ledger_header *header,
			uint32_t *n_slots)
{
	static uint16_t slot_of[TM_RULES_MAX]; /* + 1 */
	uint32_t count = route->rules ? atomic_load(&route->rules->count) : 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct tm_rule *rule = &route->rules->rule[i];
		bool used = atomic_load_explicit(&rule->used, memory_order_relaxed);
		struct tm_ledger_decision *d;

		if (rule->is_profile || (slot_of[i] == 0 && used))
			continue;
		if (slot_of[i] == 0)
			slot_of[i] = (uint16_t)++ * n_slots;
		d = slot(header, slot_of[i] - 1u);
		if (d == NULL)
			return;
		d->rule = (uint16_t)rule->line;
		d->flags = TM_LEDGER_DECIDES_NONE;
		d->site = used ? 0 : 1;
	}
}

void tm_decisions_follow(const struct tm_route *route)
{
	atomic_store_explicit(&followed, route, memory_order_release);
}

/* [tick lock] The walk over the sites; it goes on where it ended. */
static struct {
	uint32_t at; /* the next site; 0: a new walk begins */
	uint32_t n_slots;
} walk;

/* So many sites more. */
static void write_some(const struct tm_route *route, struct tm_ledger_header *header,
		       uint32_t sites)
{
	uint32_t end = tm_sites_end(&route->sites);
	uint32_t from = walk.at == 0 ? 1 : walk.at;
	uint32_t to = end - from > sites ? from + sites : end;

	for (uint32_t at = from; at < to; at++) {
		struct tm_site_record *r = &route->sites.record[at];
		struct tm_ledger_decision *d;

		/* Withdrawn sites keep what was last said of them. */
		if (!tm_sites_is_live(r))
			continue;
		if (r->slot == 0 && walk.n_slots < TM_LEDGER_DECISIONS)
			r->slot = (uint16_t)++walk.n_slots;
		d = r->slot ? slot(header, r->slot - 1u) : NULL;
		if (d != NULL)
			write_site(route, (uint16_t)at, d);
	}
	walk.at = to < end ? to : 0;
	header->decisions_lost =
		tm_bits_max(atomic_load_explicit(&route->sites.used, memory_order_relaxed),
			    TM_LEDGER_DECISIONS) -
		TM_LEDGER_DECISIONS;
}

void tm_decisions_write(void)
{
	const struct tm_route *route = atomic_load_explicit(&followed, memory_order_acquire);
	struct tm_ledger_header *header = tm_ledger_header();

	if (route == NULL || header == NULL)
		return;
	write_rules(route, header, &walk.n_slots);
	walk.at = 0;
	write_some(route, header, UINT32_MAX);
}

/*
 * A walk over 1,000 sites costs 50 us: only when there are new sites, and else every TICKS-th time; and
 * a part of it at a time, where they are very many.
 */
void tm_decisions_tick(void)
{
	const struct tm_route *route = atomic_load_explicit(&followed, memory_order_acquire);
	struct tm_ledger_header *header = tm_ledger_header();
	static uint32_t walked_used, ticks;
	uint32_t used;

	if (route == NULL || header == NULL)
		return;
	used = atomic_load_explicit(&route->sites.used, memory_order_relaxed);
	if (walk.at == 0) {
		if (used == walked_used && ++ticks % TICKS != 0)
			return;
		walked_used = used;
		write_rules(route, header, &walk.n_slots);
	}
	write_some(route, header, SITES_A_TICK);
}
