/* SPDX-License-Identifier: MIT */
/*
 * cmd_diff: diff, what has grown between two ledgers or reports; and merge, a process tree as one.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analysis/analysis.h"
#include "tools/analysis/combine.h"
#include "tools/analysis/document_load.h"
#include "tools/cmd.h"
#include "tools/cmd/select.h"
#include "tools/export/export_file.h"

void tm_text_diff(struct tm_text *t, const struct tm_document *doc,
		  const struct tm_text_options *options)
{
	int64_t up = 0;
	size_t shown = 0;

	for (size_t i = 0; i < doc->sites.count; i++) {
		const struct tm_doc_site *s = &doc->sites.at[i];
		int64_t d = (int64_t)(s->live_bytes - s->base_live_bytes);

		up += d > 0 ? d : 0;
	}
	tm_text_line(t, TM_TEXT_PLAIN, "VERDICT  %s",
		     doc->verdict.text ? doc->verdict.text : "none");
	tm_text_line(t, TM_TEXT_PLAIN, "tiermalloc diff  %s against %s",
		     doc->diff.b ? doc->diff.b : "?", doc->diff.a ? doc->diff.a : "?");
	tm_text_line(t, TM_TEXT_DIM, "%14s %12s %14s %12s  %-8s %s", "live bytes", "objects",
		     "allocated", "of it", "site", "where");
	for (size_t i = 0; i < doc->sites.count && shown < options->top; i++) {
		const struct tm_doc_site *s = &doc->sites.at[i];
		int64_t bytes = (int64_t)(s->live_bytes - s->base_live_bytes);
		int64_t objects = (int64_t)(s->live_objs - s->base_live_objs);
		char name[300];

		if (bytes == 0 && objects == 0)
			continue;
		tm_analysis_name_frame(doc, tm_analysis_frame(doc, s), name, sizeof(name));
		tm_text_named(t, TM_TEXT_PLAIN, name,
			      "%+14" PRId64 " %+12" PRId64 " %+14" PRId64 " %11.1f%%  %-8s ", bytes,
			      objects, (int64_t)(s->alloc_objs - s->base_alloc_objs),
			      up > 0 && bytes > 0 ? 100 * (double)bytes / (double)up : 0.0, s->id);
		shown++;
	}
	tm_text_gpu_diff(t, doc, options->top);
}

struct pair {
	const char *a, *b;
	const char *html;
	bool json;
	struct tm_text_options text;
};

static int parse(struct pair *p, int argc, char **argv)
{
	*p = (struct pair){.text = {.top = 20}};
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0) {
			p->json = true;
		} else if (strcmp(argv[i], "--html") == 0 && i + 1 < argc) {
			p->html = argv[++i];
		} else if (strcmp(argv[i], "--top") == 0 && i + 1 < argc) {
			int status = tm_take_count("diff", "--top", argv[++i], &p->text.top);

			if (status)
				return status;
		} else if (strcmp(argv[i], "--html") == 0 || strcmp(argv[i], "--top") == 0) {
			return tm_say_no_value("diff", argv[i]);
		} else if (argv[i][0] == '-' && argv[i][1]) {
			return tm_say_unknown("diff", argv[i]);
		} else if (p->a == NULL) {
			p->a = argv[i];
		} else if (p->b == NULL) {
			p->b = argv[i];
		} else {
			return tm_say_usage("diff: more than two ledgers: '%s'", argv[i]);
		}
	}
	return p->b ? 0 : tm_say_needs("diff", "two ledgers or reports");
}

/* Loads a process, a folder, a ledger or a report in JSON. */
static int load(struct tm_document *doc, const char *what)
{
	char path[PATH_MAX];
	int status = strcmp(what, "-") == 0 ? 0 : tm_select_ledger(what, path, sizeof(path));

	if (status)
		return status;
	return tm_document_load(doc, strcmp(what, "-") == 0 ? what : path) == 0 ? 0 : TM_EXIT_USAGE;
}

int tm_cmd_diff(int argc, char **argv)
{
	struct tm_document a, b;
	struct tm_text t;
	struct pair p;
	int status = parse(&p, argc, argv);

	if (status == 0 && p.html)
		status = tm_export_check("diff", p.html, p.a);
	if (status == 0 && p.html)
		status = tm_export_check("diff", p.html, p.b);
	if (status)
		return status;
	tm_document_init(&a);
	tm_document_init(&b);
	status = load(&a, p.a);
	if (status == 0)
		status = load(&b, p.b);
	if (status == 0) {
		/*
		 * A report has the name of the ledger that it was made from: replace it by the file
		 * given.
		 */
		a.process.ledger = tm_document_text(&a, p.a);
		b.process.ledger = tm_document_text(&b, p.b);
		tm_combine_diff(&b, &a);
		const struct tm_export_options usual = {.top_sites = 0};

		tm_text_init(&t, stdout);
		if (p.html)
			status = tm_export_to(&b, "html", &usual, p.html);
		else if (!p.json)
			tm_text_diff(&t, &b, &p.text);
		else if (!tm_document_write_json(&b, stdout))
			status = TM_EXIT_TROUBLE;
	}
	tm_document_clear(&a);
	tm_document_clear(&b);
	return status;
}

struct merging {
	struct tm_document sum;
	size_t count;
};

static int merge_one(void *merging, const char *path)
{
	struct merging *m = merging;
	struct tm_document more;
	int status;

	if (m->count++ == 0)
		return load(&m->sum, path);
	tm_document_init(&more);
	status = load(&more, path);
	if (status == 0)
		tm_combine_merge(&m->sum, &more);
	tm_document_clear(&more);
	return status;
}

int tm_cmd_merge(int argc, char **argv)
{
	const struct tm_export_options options = {.top_sites = 0};
	struct merging m = {.count = 0};
	const char *to = NULL;
	int status = 0;

	for (int i = 1; i + 1 < argc; i++) {
		if (strcmp(argv[i], "-o") == 0)
			to = argv[i + 1];
	}
	for (int i = 1; to && i < argc && status == 0; i++) {
		if (strcmp(argv[i], "-o") == 0)
			i++;
		else
			status = tm_export_check("merge", to, argv[i]);
	}
	tm_document_init(&m.sum);
	for (int i = 1; i < argc && status == 0; i++) {
		if (strcmp(argv[i], "-o") == 0 && i + 1 < argc)
			to = argv[++i];
		else if (argv[i][0] == '-' && argv[i][1])
			status = strcmp(argv[i], "-o") == 0 ? tm_say_no_value("merge", argv[i])
							    : tm_say_unknown("merge", argv[i]);
		else
			status = tm_select_each(argv[i], true, merge_one, &m);
	}
	if (status == 0 && (m.count == 0 || to == NULL))
		status = tm_say_needs("merge", "ledgers and '-o FILE'");
	if (status == 0) {
		tm_combine_sum_up(&m.sum, m.count);
		status = tm_export_to(&m.sum, "json", &options, to);
	}
	tm_document_clear(&m.sum);
	return status;
}
