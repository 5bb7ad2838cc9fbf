/* SPDX-License-Identifier: MIT */
/*
 * explain: prints the tier of each call site's blocks, by which authority, and the rules that
 * decided nothing.
 */
#include <limits.h>
#include <stdio.h>

#include "shim/base/fmt.h"
#include "tools/analysis/decisions.h"
#include "tools/cmd.h"
#include "tools/cmd/select.h"
#include "tools/ledger/control.h"

static void name_authority(const struct tm_ledger_decision *r, char *buf, size_t size)
{
	if (r->authority == TM_LEDGER_BY_RULE && r->rule != 0)
		snprintf(buf, size, "rule %u", r->rule);
	else if (r->rule != 0) /* for some of the site's requests */
		snprintf(buf, size, "%s, rule %u", tm_decisions_authority(r->authority), r->rule);
	else
		snprintf(buf, size, "%s", tm_decisions_authority(r->authority));
}

static void name_record(const struct tm_decision *d, char *buf, size_t size)
{
	const struct tm_ledger_decision *r = d->record;
	char from[16], to[16], height[32] = "";

	if (r->size_log2 != 0) {
		tm_fmt_bytes(from, sizeof(from), UINT64_C(1) << (r->size_log2 & 63));
		tm_fmt_bytes(to, sizeof(to), UINT64_C(2) << (r->size_log2 & 63));
		if (r->height != 0)
			snprintf(height, sizeof(height), " at stack height %u", r->height * 16u);
		snprintf(buf, size, "    from %s to %s%s", from, to, height);
	} else if (r->height != 0) {
		snprintf(buf, size, "  at stack height %u", r->height * 16u);
	} else {
		snprintf(buf, size, "%s%s", d->function,
			 r->flags & TM_LEDGER_DECIDES_LARGE ? ", from 256 KiB on" : "");
	}
}

/* "before": the row above, whose site may be the same; NULL: none. */
static void print_record(struct tm_text *t, const struct tm_decision *d,
			 const struct tm_decision *before)
{
	const struct tm_ledger_decision *r = d->record;
	char live[16], bytes[16], by[32], label[224];

	tm_fmt_bytes(live, sizeof(live), d->live_bytes);
	tm_fmt_bytes(bytes, sizeof(bytes), d->bytes);
	/*
	 * The account does not distinguish sizes, nor heights if there are many: a site's bytes are
	 * shown once.
	 */
	bool is_shown = r->height == 0 && before && before->record->site == r->site;
	if (r->size_log2 != 0 || (r->height != 0 && d->bytes == 0) || is_shown) {
		snprintf(live, sizeof(live), "-");
		snprintf(bytes, sizeof(bytes), "-");
	}
	name_authority(r, by, sizeof(by));
	name_record(d, label, sizeof(label));
	tm_text_named(t, TM_TEXT_PLAIN, label, "%-11s %-16s %10s %10s %9llu %9u %9u  ",
		      tm_document_tier_name((enum tm_doc_tier)r->tier), by, live, bytes,
		      (unsigned long long)r->objects, r->short_lived, r->long_lived);
}

/* Explains the words and columns that occur in the table. */
static void print_legend(struct tm_text *t, const struct tm_decisions *d, size_t rows)
{
	bool seen[256] = {false};
	bool first = true;

	tm_text_line(t, TM_TEXT_PLAIN, "%s", "");
	for (size_t i = 0; i < rows; i++) {
		seen[d->at[i].record->authority] = true;
		seen[TM_LEDGER_BY_RULE] |= d->at[i].record->rule != 0;
	}
	for (unsigned by = 0; by < TM_ARRAY_LEN(seen); by++) {
		if (!seen[by])
			continue;
		tm_text_prose(t, TM_TEXT_DIM, 15, "%-5s %-8s %s", first ? "by" : "",
			      tm_decisions_authority((uint8_t)by),
			      tm_decisions_meaning((uint8_t)by));
		first = false;
	}
	tm_text_prose(
		t, TM_TEXT_DIM, 15,
		"routed         blocks above 1 KiB that were decided about one by one; smaller ones go by the phase");
	tm_text_prose(
		t, TM_TEXT_DIM, 15,
		"die soon, late of those that were freed: within the half second (or step) of their birth or the next one, or later");
}

static void print_all(const struct tm_decisions *d, const struct tm_ledger *l, size_t top)
{
	struct tm_text text, *t = &text;
	const struct tm_decision *last = NULL;
	size_t sites = 0, shown = 0, rows = 0;

	tm_text_init(t, stdout);
	tm_text_prose(t, TM_TEXT_PLAIN, 2, "tiermalloc explain  %s pid %u  %s", l->header.program,
		      l->header.pid, tm_ledger_ended(l));
	if (l->header.features & TM_LEDGER_OBSERVES)
		tm_text_prose(
			t, TM_TEXT_UNSURE, 2,
			"TIERMALLOC=observe: these tiers were decided but not used, all blocks "
			"lie as without tiers");
	tm_text_line(t, TM_TEXT_PLAIN, "%s", "");
	tm_text_line(t, TM_TEXT_DIM, "%-11s %-16s %10s %10s %9s %9s %9s  %s", "tier", "by", "live",
		     "allocated", "routed", "die soon", "die late", "called from");
	for (size_t i = 0; i < d->count; i++) {
		sites += last == NULL || d->at[i].record->site != last->record->site;
		if (sites <= top)
			print_record(t, &d->at[i], last);
		last = &d->at[i];
		if (sites > top)
			continue;
		shown = sites;
		rows = i + 1;
	}
	if (d->count == 0)
		tm_text_prose(t, TM_TEXT_PLAIN, 2,
			      "nothing was routed yet: small blocks go by the phase alone");
	if (rows)
		print_legend(t, d, rows);
	if (sites > shown)
		printf("... and %zu call sites with less, see --top\n", sites - shown);
	for (size_t i = 0; i < d->unused_count; i++)
		printf("%sline %u of TIERMALLOC_RULES decided nothing so far\n", i ? "" : "\n",
		       d->unused_lines[i]);
	if (d->lost)
		printf("\n%llu call sites found no room in the ledger's table\n",
		       (unsigned long long)d->lost);
}

static int write_json(struct tm_ledger *ledger, const struct tm_select *s)
{
	struct tm_document doc;
	int status = TM_EXIT_TROUBLE;

	tm_document_init(&doc);
	if (tm_analysis_fill(&doc, ledger, &s->analysis) == 0 &&
	    tm_document_write_json(&doc, stdout))
		status = TM_EXIT_CLEAN;
	tm_document_clear(&doc);
	return status;
}

int tm_cmd_explain(int argc, char **argv)
{
	struct tm_decisions decisions;
	struct tm_ledger ledger;
	struct tm_select s;
	char path[PATH_MAX];
	int status;

	tm_select_init(&s, TM_DOC_FULL);
	status = tm_select_parse(&s, argc, argv);
	if (status)
		return status;
	status = tm_select_ledger(s.target, path, sizeof(path));
	if (status)
		return status;
	tm_control_prepare(path, false);
	if (tm_ledger_open(&ledger, path) != 0)
		return TM_EXIT_USAGE;
	if (s.json) {
		status = write_json(&ledger, &s);
	} else if (tm_decisions_read(&decisions, &ledger, s.analysis.debug_dir) == 0) {
		print_all(&decisions, &ledger, s.text.top);
		tm_decisions_free(&decisions);
	} else {
		status = TM_EXIT_TROUBLE;
	}
	tm_ledger_close(&ledger);
	return status;
}
