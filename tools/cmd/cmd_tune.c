/* SPDX-License-Identifier: MIT */
/*
 * tune: turns what earlier runs learned into rules: one line per call site, with the evidence.
 * Sites on which the runs disagree, or whose lifetimes are mixed, become comments. Sizes that are
 * requested again and again become a list for TIERMALLOC_POOLS.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/fmt.h"
#include "tools/analysis/decisions.h"
#include "tools/cmd.h"
#include "tools/cmd/select.h"
#include "tools/document/document.h"
#include "tools/export/export_file.h"
#include "tools/text/text_fit.h"

/* Least evidence for a rule. */
#define OBJECTS_MIN 16u
/* tm_ledger_decision.phase */
#define PHASE_LOAD 1u
#define POOLS_STEP 64u
#define BYTES_MIN (UINT64_C(1) << 20)

struct entry {
	char place[128], function[192];
	uint64_t bytes, objects, shorts, longs;
	uint8_t tier;
	bool is_large, is_split, is_disputed;
	unsigned runs;
};

struct pool;
struct entries {
	struct entry *at; /* owned */
	size_t count, room;
	struct pool *pool; /* owned */
	size_t pools;
};

static struct entry *entry_of(struct entries *all, const struct tm_decision *d)
{
	bool is_large = d->record->flags & TM_LEDGER_DECIDES_LARGE;
	struct entry *e;

	for (size_t i = 0; i < all->count; i++) {
		e = &all->at[i];
		if (e->is_large == is_large && strcmp(e->place, d->place) == 0)
			return e;
	}
	if (all->count == all->room) {
		size_t room = all->room * 2 + 64;
		struct entry *more = realloc(all->at, room * sizeof(*more));

		if (more == NULL)
			return NULL;
		all->at = more;
		all->room = room;
	}
	e = &all->at[all->count++];
	*e = (struct entry){.tier = d->record->tier, .is_large = is_large};
	memcpy(e->place, d->place, sizeof(e->place));
	memcpy(e->function, d->function, sizeof(e->function));
	/* A line break in a program's name would begin another rule. */
	tm_text_fit_defuse(e->place, TM_TEXT_UTF8);
	tm_text_fit_defuse(e->function, TM_TEXT_UTF8);
	return e;
}

/* A decision made by a rule, or a guess by phase about blocks that died, is no evidence. */
static bool is_evidence(const struct tm_ledger_decision *r)
{
	if (r->size_log2 != 0 || r->height != 0)
		return false;
	return r->authority == TM_LEDGER_BY_LEARNING ||
	       (r->authority == TM_LEDGER_BY_PHASE && r->phase == PHASE_LOAD &&
		r->short_lived + r->long_lived == 0);
}

/*
 * A size is worth a pool if it was requested this often, this many times as often as its blocks
 * lived at once.
 */
#define POOL_COUNT_MIN 16u
#define POOL_TIMES_MIN 4u
#define POOLS_SHOWN 8u
/* Smaller blocks come from spans of slots. */
#define POOL_ABOVE_BYTES 65536u

struct pool {
	uint64_t size, count;
	uint32_t peak, tier;
};

static struct pool *pool_of(struct entries *all, const struct tm_ledger_size *s)
{
	for (size_t i = 0; i < all->pools; i++)
		if (all->pool[i].size == s->size)
			return &all->pool[i];
	if (all->pools % POOLS_STEP == 0) {
		struct pool *more =
			realloc(all->pool, (all->pools + POOLS_STEP) * sizeof(*all->pool));

		if (more == NULL)
			return NULL;
		all->pool = more;
	}
	all->pool[all->pools] = (struct pool){.size = s->size};
	return &all->pool[all->pools++];
}

/* Persistent blocks are allocated once: a pool would hold their memory twice. */
static void add_sizes(struct entries *all, const struct tm_ledger *ledger)
{
	const struct tm_ledger_size *s = tm_ledger_at(ledger, TM_LEDGER_SIZES_AT);

	for (size_t i = 0; i < TM_LEDGER_SIZES; i++, s++) {
		struct pool *p;

		if (s->size <= POOL_ABOVE_BYTES || s->count < POOL_COUNT_MIN || s->peak == 0 ||
		    s->count / s->peak < POOL_TIMES_MIN)
			continue;
		p = pool_of(all, s);
		if (p == NULL)
			return;
		p->count += s->count;
		p->peak = p->peak < s->peak ? s->peak : p->peak;
		p->tier = s->tier;
	}
}

static int add_ledger(void *entries, const char *path)
{
	struct entries *all = entries;
	struct tm_decisions decisions;
	struct tm_ledger ledger;

	if (tm_ledger_open(&ledger, path) != 0)
		return TM_EXIT_USAGE;
	if (tm_decisions_read(&decisions, &ledger, NULL) != 0) {
		tm_ledger_close(&ledger);
		return TM_EXIT_TROUBLE;
	}
	for (size_t i = 0; i < decisions.count; i++) {
		const struct tm_decision *d = &decisions.at[i];
		struct entry *e = is_evidence(d->record) ? entry_of(all, d) : NULL;

		if (e == NULL)
			continue;
		e->is_disputed |= e->tier != d->record->tier;
		e->is_split |= d->split;
		e->bytes += d->bytes;
		e->objects += d->record->objects;
		e->shorts += d->record->short_lived;
		e->longs += d->record->long_lived;
		e->runs++;
	}
	add_sizes(all, &ledger);
	tm_decisions_free(&decisions);
	tm_ledger_close(&ledger);
	return 0;
}

static int by_traffic(const void *a, const void *b)
{
	const struct pool *x = a, *y = b;
	double left = (double)x->size * (double)x->count,
	       right = (double)y->size * (double)y->count;

	return left < right ? 1 : left > right ? -1 : x->size < y->size;
}

/*
 * Writes the sizes that were requested again most, by bytes; as many blocks each as lived at once.
 */
static void write_pools(FILE *out, struct entries *all)
{
	if (all->pools == 0)
		return;
	qsort(all->pool, all->pools, sizeof(*all->pool), by_traffic);
	fputs("# Sizes that were asked for again and again; not rules, but for the environment:\n"
	      "# TIERMALLOC_POOLS=",
	      out);
	for (size_t i = 0; i < all->pools && i < POOLS_SHOWN; i++) {
		const struct pool *p = &all->pool[i];
		bool in_kib = p->size % 1024 == 0;

		fprintf(out, "%s%llu%s*%lu@%s", i ? "," : "",
			(unsigned long long)(in_kib ? p->size / 1024 : p->size), in_kib ? "K" : "",
			(unsigned long)p->peak,
			p->tier == TM_DOC_TEMPORARY ? "temporary" : "session");
	}
	fputc('\n', out);
}

static int by_bytes(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : 0;
}

static bool is_enough(const struct entry *e)
{
	return e->bytes >= BYTES_MIN || e->objects >= OBJECTS_MIN;
}

static void write_rules(FILE *out, struct entries *all)
{
	qsort(all->at, all->count, sizeof(*all->at), by_bytes);
	fputs("# Rules for TIERMALLOC_RULES, see tiermalloc-rules(5): what earlier runs learned.\n",
	      out);
	for (size_t i = 0; i < all->count; i++) {
		const struct entry *e = &all->at[i];
		char bytes[16];

		if (!is_enough(e))
			continue;
		tm_fmt_bytes(bytes, sizeof(bytes), e->bytes);
		if (e->is_disputed || e->is_split)
			fprintf(out, "# %s: ",
				e->is_disputed ? "runs disagree" : "blocks live differently");
		fprintf(out,
			"site=%s %s -> tier=%s # %s; %s, %llu routed, %llu died soon, %llu late; %u run%s\n",
			e->place, e->is_large ? "size>=256K" : "size<=262143",
			tm_document_tier_name((enum tm_doc_tier)e->tier), e->function, bytes,
			(unsigned long long)e->objects, (unsigned long long)e->shorts,
			(unsigned long long)e->longs, e->runs, e->runs == 1 ? "" : "s");
	}
}

static int write_to(const char *path, struct entries *all)
{
	FILE *out = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");
	bool failed;

	if (out == NULL) {
		tm_say("'%s' cannot be written: %s", path, strerror(errno));
		return TM_EXIT_TROUBLE;
	}
	write_rules(out, all);
	write_pools(out, all);
	if (out == stdout)
		return TM_EXIT_CLEAN;
	failed = ferror(out) != 0;
	failed |= fclose(out) != 0;
	if (failed)
		tm_say("'%s' cannot be written: %s", path, strerror(errno));
	return failed ? TM_EXIT_TROUBLE : TM_EXIT_CLEAN;
}

int tm_cmd_tune(int argc, char **argv)
{
	struct entries all = {0};
	const char *path = NULL;
	int status = 0, ledgers = 0;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "-o") == 0) {
			if (++i == argc)
				return tm_say_no_value("tune", "-o");
			path = argv[i];
		} else if (argv[i][0] == '-') {
			return tm_say_unknown("tune", argv[i]);
		} else {
			ledgers++;
		}
	}
	if (path == NULL || ledgers == 0)
		return tm_say_needs("tune", "ledgers and '-o RULES'");
	status = tm_export_check("tune", path, NULL);
	for (int i = 1; i < argc && status == 0; i++) {
		if (strcmp(argv[i], "-o") == 0)
			i++;
		else
			status = tm_select_each(argv[i], false, add_ledger, &all);
	}
	if (status == 0)
		status = write_to(path, &all);
	free(all.at);
	free(all.pool);
	return status;
}
