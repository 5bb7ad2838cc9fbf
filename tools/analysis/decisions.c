/* SPDX-License-Identifier: MIT */
/* decisions: see decisions.h. */
#include "tools/analysis/decisions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analysis/analysis.h"
#include "tools/cmd.h"

enum by {
	BY_NONE,
#define X(authority, name, meaning) BY_##authority,
#include "shim/base/authorities.def"
#undef X
};

static const char *const names[] = {
	[BY_NONE] = "?",
#define X(authority, name, meaning) [BY_##authority] = name,
#include "shim/base/authorities.def"
#undef X
};

static const char *const meanings[] = {
	[BY_NONE] = "this release does not know it",
#define X(authority, name, meaning) [BY_##authority] = meaning,
#include "shim/base/authorities.def"
#undef X
};

static enum by by_of(uint8_t authority)
{
	switch (authority) {
	case TM_LEDGER_BY_DEFAULT: return BY_DEFAULT;
	case TM_LEDGER_BY_SIZE: return BY_SIZE;
	case TM_LEDGER_BY_PROFILE: return BY_PROFILE;
	case TM_LEDGER_BY_LEARNING: return BY_LEARNED;
	case TM_LEDGER_BY_RULE: return BY_RULE;
	case TM_LEDGER_BY_PHASE: return BY_PHASE;
	default: return BY_NONE;
	}
}

const char *tm_decisions_authority(uint8_t authority)
{
	return authority == TM_LEDGER_BY_CALLER ? "caller" : names[by_of(authority)];
}

const char *tm_decisions_meaning(uint8_t authority)
{
	return authority == TM_LEDGER_BY_CALLER ? "the program itself, by tiermalloc_alloc()"
						: meanings[by_of(authority)];
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Sets both names of a return address. */
static void name_place(struct tm_decision *d, const struct tm_ledger *ledger,
		       struct tm_symbols *symbols)
{
	uint64_t site = d->record->site;
	site = tm_ledger_return_address(ledger, site,
					tm_ledger_stack(ledger, site, d->record->height));
	const struct tm_ledger_module *m = tm_ledger_module(ledger, site, 0);
	struct tm_symbols_module module;
	struct tm_symbol found[8];
	uint64_t offset;
	size_t n;

	tm_ledger_name(ledger, site, d->function, sizeof(d->function));
	snprintf(d->place, sizeof(d->place), "%.100s", d->function);
	if (m == NULL)
		return;
	offset = site - m->base;
	module = (struct tm_symbols_module){m->path, m->build_id, m->build_id_bytes};
	if (m->build_id_bytes > 0 && m->build_id_bytes <= sizeof(m->build_id)) {
		for (uint32_t i = 0; i < m->build_id_bytes; i++)
			snprintf(d->place + 2 * i, sizeof(d->place) - 2 * i, "%02x",
				 m->build_id[i]);
		n = strlen(d->place);
		snprintf(d->place + n, sizeof(d->place) - n, "+%#llx", (unsigned long long)offset);
	} else {
		snprintf(d->place, sizeof(d->place), "%.100s+%#llx", base_name(m->path),
			 (unsigned long long)offset);
	}
	/* The call is in front of the return address. */
	n = symbols ? tm_symbols_find(symbols, &module, offset - 1, found, 8) : 0;
	if (n == 0 || found[0].function == NULL)
		return;
	const struct tm_symbol *f = found;
	/* Like reports, skip C++ containers, which are in every stack, and name their user. */
	while (f + 1 < found + n && tm_analysis_is_library(f->function, f->file))
		f++;
	if (f->function == NULL)
		f = found;
	if (f->file)
		snprintf(d->function, sizeof(d->function), "%.120s (%.50s:%u)", f->function,
			 base_name(f->file), f->line);
	else
		snprintf(d->function, sizeof(d->function), "%.120s (%.50s)", f->function,
			 base_name(m->path));
}

/* Adds what the account has for the record's site; its heights are + 1. */
static void add_bytes(struct tm_decision *d, const struct tm_ledger *ledger)
{
	for (size_t i = 0; i < ledger->site_count; i++) {
		const struct tm_ledger_site *s = &ledger->sites[i];

		if ((s->address & UINT64_C(0xffffffffffff)) != d->record->site)
			continue;
		d->order += s->bytes;
		if (d->record->height != 0 && s->height != d->record->height + 1u)
			continue;
		d->live_bytes += s->live_bytes;
		d->bytes += s->bytes;
	}
}

static int level_of(const struct tm_ledger_decision *d)
{
	return d->size_log2 != 0 ? 2 : d->height != 0;
}

static int compare(const void *a, const void *b)
{
	const struct tm_decision *x = a, *y = b;
	const struct tm_ledger_decision *p = x->record, *q = y->record;

	if (x->order != y->order)
		return x->order < y->order ? 1 : -1;
	if (p->site != q->site)
		return p->site < q->site ? -1 : 1;
	if ((p->flags ^ q->flags) & TM_LEDGER_DECIDES_LARGE)
		return p->flags & TM_LEDGER_DECIDES_LARGE ? -1 : 1;
	if (p->height != q->height)
		return p->height < q->height ? -1 : 1;
	return level_of(p) - level_of(q);
}

static void find_splits(struct tm_decisions *d)
{
	for (size_t i = 0; i + 1 < d->count; i++) {
		const struct tm_ledger_decision *p = d->at[i].record, *q = d->at[i + 1].record;

		d->at[i].split =
			p->site == q->site && p->flags == q->flags && level_of(q) > level_of(p);
	}
}

int tm_decisions_read(struct tm_decisions *ret, const struct tm_ledger *ledger,
		      const char *debug_dir)
{
	const struct tm_ledger_decision *d = tm_ledger_at(ledger, TM_LEDGER_DECISIONS_AT);
	struct tm_symbols *symbols = tm_symbols_new(debug_dir);
	uint32_t count = ledger->header.decisions;

	*ret = (struct tm_decisions){.lost = ledger->header.decisions_lost};
	ret->at = calloc(count + 1, sizeof(*ret->at));
	ret->unused_lines = calloc(count + 1, sizeof(*ret->unused_lines));
	if (ret->at == NULL || ret->unused_lines == NULL) {
		tm_say("there is not enough memory for '%s'", ledger->path);
		tm_decisions_free(ret);
		tm_symbols_free(symbols);
		return -1;
	}
	for (uint32_t i = 0; i < count; i++, d++) {
		if (d->site == 1 && d->flags & TM_LEDGER_DECIDES_NONE) {
			ret->unused_lines[ret->unused_count++] = d->rule;
		} else if (d->site > 1 && d->tier < TM_LEDGER_TIERS) {
			struct tm_decision *to = &ret->at[ret->count++];

			to->record = d;
			add_bytes(to, ledger);
			name_place(to, ledger, symbols);
		}
	}
	qsort(ret->at, ret->count, sizeof(*ret->at), compare);
	find_splits(ret);
	tm_symbols_free(symbols);
	return 0;
}

void tm_decisions_free(struct tm_decisions *decisions)
{
	free(decisions->at);
	free(decisions->unused_lines);
	*decisions = (struct tm_decisions){0};
}
