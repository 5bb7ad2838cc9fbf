/* SPDX-License-Identifier: MIT */
/*
 * export_chrome: writes the timeline as counters in the Trace Event Format, which chrome://tracing
 * and Perfetto open. Tiers are one stacked counter; each other series is its own. Times are
 * microseconds since the first value; otherData has its date.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tools/export/export.h"

static uint64_t pid_of(const struct tm_document *doc)
{
	return doc->process.pid == TM_DOC_UNKNOWN ? 0 : doc->process.pid;
}

/* The tier's name in a series such as "tier.session.live"; false for other series. */
static bool tier_of(const char *series, char *buf, size_t size)
{
	const char *dot = strncmp(series, "tier.", 5) == 0 ? strrchr(series, '.') : NULL;

	if (dot == NULL || strcmp(dot, ".live") != 0 || dot <= series + 5)
		return false;
	snprintf(buf, size, "%.*s", (int)(dot - series - 5), series + 5);
	return true;
}

static void put_begin(const struct tm_document *doc, const char *name, double t, FILE *out)
{
	fputs(",\n{\"ph\":\"C\",\"name\":", out);
	tm_json_put_text(out, name);
	fprintf(out, ",\"pid\":%" PRIu64 ",\"tid\":0,\"ts\":%.0f,\"args\":{", pid_of(doc),
		(t - doc->timeline.t.at[0]) * 1e6);
}

static void put_tiers(const struct tm_document *doc, size_t at, FILE *out)
{
	const char *between = "";
	char tier[64];

	for (size_t i = 0; i < doc->timeline.series.count; i++) {
		const struct tm_doc_series *s = &doc->timeline.series.at[i];

		if (!tier_of(s->name, tier, sizeof(tier)) || !isfinite(s->values.at[at]))
			continue;
		if (*between == '\0')
			put_begin(doc, "live bytes by tier", doc->timeline.t.at[at], out);
		fputs(between, out);
		tm_json_put_text(out, tier);
		fprintf(out, ":%.0f", s->values.at[at]);
		between = ",";
	}
	if (*between)
		fputs("}}", out);
}

static void put_events(const struct tm_document *doc, FILE *out)
{
	double start = doc->timeline.t.count ? doc->timeline.t.at[0] : 0;

	for (size_t i = 0; i < doc->events.count; i++) {
		const struct tm_doc_event *e = &doc->events.at[i];

		if (e->at_unix_ns == TM_DOC_UNKNOWN || (double)e->at_unix_ns / 1e9 < start)
			continue;
		fputs(",\n{\"ph\":\"i\",\"s\":\"p\",\"name\":", out);
		tm_json_put_text(out, e->kind ? e->kind : "event");
		fprintf(out, ",\"pid\":%" PRIu64 ",\"tid\":0,\"ts\":%.0f,\"args\":{\"text\":",
			pid_of(doc), ((double)e->at_unix_ns / 1e9 - start) * 1e6);
		tm_json_put_text(out, e->text);
		fputs("}}", out);
	}
}

bool tm_export_chrome(const struct tm_document *doc, const struct tm_export_options *o, FILE *out)
{
	const struct tm_doc_timeline *t = &doc->timeline;
	char tier[64];

	(void)o;
	fprintf(out,
		"{\"displayTimeUnit\":\"ms\",\"otherData\":{\"schema\":\"" TM_DOC_SCHEMA
		"\",\"start_unix_s\":\"%.3f\"},\n\"traceEvents\":[\n",
		t->t.count ? t->t.at[0] : 0);
	fprintf(out,
		"{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%" PRIu64
		",\"tid\":0,\"args\":{\"name\":",
		pid_of(doc));
	tm_json_put_text(out, doc->process.program ? doc->process.program : "process");
	fputs("}}", out);
	for (size_t at = 0; at < t->t.count; at++) {
		put_tiers(doc, at, out);
		for (size_t i = 0; i < t->series.count; i++) {
			const struct tm_doc_series *s = &t->series.at[i];

			if (tier_of(s->name, tier, sizeof(tier)) || !isfinite(s->values.at[at]))
				continue;
			put_begin(doc, s->name, t->t.at[at], out);
			fprintf(out, "\"bytes\":%.0f}}", s->values.at[at]);
		}
	}
	put_events(doc, out);
	fputs("\n]}\n", out);
	return !ferror(out);
}
