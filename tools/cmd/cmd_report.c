/* SPDX-License-Identifier: MIT */
/* cmd_report: report, leaks and frag: print a ledger as text, JSON or a page. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analysis/holders.h"
#include "tools/cmd.h"
#include "tools/cmd/select.h"
#include "tools/export/export_file.h"
#include "tools/ledger/control.h"

/* Finds the site by its id, or by an unambiguous prefix of it. */
static int find_site(struct tm_select *s, const struct tm_document *doc)
{
	const struct tm_doc_site *found = NULL;
	size_t len, matches = 0;

	if (s->text.site == NULL)
		return 0;
	len = strlen(s->text.site);
	for (size_t i = 0; i < doc->sites.count; i++) {
		if (strncmp(doc->sites.at[i].id, s->text.site, len) != 0)
			continue;
		found = &doc->sites.at[i];
		matches++;
		if (found->id[len] == '\0') {
			matches = 1;
			break;
		}
	}
	if (matches == 0)
		return tm_say_usage("there is no site '%s', 'report' lists them", s->text.site);
	if (matches > 1)
		return tm_say_usage("'%s' is the beginning of %zu sites, give more of it",
				    s->text.site, matches);
	s->text.site = found->id;
	return 0;
}

static void print_text(const struct tm_select *s, const struct tm_document *doc)
{
	struct tm_text t;

	tm_text_init(&t, s->out);
	if (s->text.site) {
		tm_text_head(&t, doc, s->analysis.kind == TM_DOC_LEAK ? "leak" : "site");
		tm_text_site(&t, doc, tm_document_site(doc, s->text.site));
		for (size_t i = 0; i < s->holders.count; i++)
			tm_text_line(&t, TM_TEXT_PLAIN, "%s  %s", i ? "       " : "held by",
				     s->holders.at[i]);
	} else if (s->analysis.kind == TM_DOC_LEAK) {
		tm_text_leaks(&t, doc, &s->text);
	} else if (s->analysis.kind == TM_DOC_FRAG) {
		tm_text_frag(&t, doc, &s->text);
	} else {
		tm_text_full(&t, doc, &s->text);
	}
}

int tm_report_write(struct tm_select *s, struct tm_document *doc)
{
	const struct tm_export_options options = {.top_sites = 0};
	int status = find_site(s, doc);
	char found[32];
	double value;

	if (status)
		return status;
	if (s->html)
		status = tm_export_to(doc, "html", &options, s->html);
	if (status)
		return status;
	if (s->json && !tm_document_write_json(doc, stdout))
		return TM_EXIT_TROUBLE;
	if (!s->json && s->out)
		print_text(s, doc);
	const struct tm_fail_condition *c = tm_fail_on_holds(&s->fail_on, doc, &value);
	if (c) {
		tm_say("'%.*s' holds: it is %s", c->length, c->text,
		       tm_fail_on_name_value(c, value, found));
		return TM_EXIT_FOUND;
	}
	if (s->analysis.kind != TM_DOC_LEAK || s->fail_on.count)
		return TM_EXIT_CLEAN;
	return doc->verdict.outcome == TM_DOC_FOUND          ? TM_EXIT_FOUND
	       : doc->verdict.outcome == TM_DOC_INCONCLUSIVE ? TM_EXIT_INCONCLUSIVE
							     : TM_EXIT_CLEAN;
}

static void find_holders(struct tm_select *s, struct tm_document *doc, struct tm_ledger *ledger)
{
	if (!s->who_holds || find_site(s, doc) != 0)
		return;
	const struct tm_doc_site *site = tm_document_site(doc, s->text.site);
	tm_holders_find(doc, ledger, (size_t)(site - doc->sites.at), &s->holders);
	for (size_t i = 0; i < doc->leaks.count; i++) {
		if (strcmp(doc->leaks.at[i].site, site->id) == 0)
			doc->leaks.at[i].holders = s->holders;
	}
}

static int load(struct tm_select *s, struct tm_document *doc)
{
	struct tm_ledger ledger;
	char path[PATH_MAX];
	int status;

	if (s->from_json)
		return tm_document_read_json(doc, s->from_json) == 0 ? 0 : TM_EXIT_USAGE;
	status = tm_select_ledger(s->target, path, sizeof(path));
	if (status)
		return status;
	s->analysis.scan = tm_control_prepare(path, s->analysis.kind == TM_DOC_LEAK && !s->no_scan);
	if (tm_ledger_open_since(&ledger, path, s->since_ms) != 0)
		return TM_EXIT_USAGE;
	status = tm_analysis_fill(doc, &ledger, &s->analysis) == 0 ? 0 : TM_EXIT_TROUBLE;
	doc->process.ledger = tm_document_text(doc, path);
	if (s->since_ms && s->since_ms < ledger.header.window_ms) {
		char since[24], window[24];

		tm_document_push_text(
			doc, &doc->blind_spots,
			tm_document_format(doc,
					   "--since %s is below a window (%s): ages are known by "
					   "windows, so that what it counts is not exact",
					   tm_text_time(since, s->since_ms),
					   tm_text_time(window, ledger.header.window_ms)));
		if (!s->json)
			tm_say("%s", doc->blind_spots.at[doc->blind_spots.count - 1]);
	}
	find_holders(s, doc, &ledger);
	tm_ledger_close(&ledger);
	return status;
}

static int run(enum tm_doc_kind kind, int argc, char **argv)
{
	struct tm_select s;
	struct tm_document doc;
	int status;

	tm_select_init(&s, kind);
	status = tm_select_parse(&s, argc, argv);
	if (status == 0 && s.html)
		status = tm_export_check(argv[0], s.html, s.from_json);
	if (status)
		return status;
	tm_document_init(&doc);
	status = load(&s, &doc);
	if (status == 0)
		status = tm_report_write(&s, &doc);
	tm_document_clear(&doc);
	return status;
}

int tm_cmd_report(int argc, char **argv)
{
	return run(TM_DOC_FULL, argc, argv);
}

int tm_cmd_leaks(int argc, char **argv)
{
	return run(TM_DOC_LEAK, argc, argv);
}

int tm_cmd_frag(int argc, char **argv)
{
	return run(TM_DOC_FRAG, argc, argv);
}
