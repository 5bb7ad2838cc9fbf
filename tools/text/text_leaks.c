/* SPDX-License-Identifier: MIT */
/* The leak report: the verdict, then at most eight lines per leak. See text.h. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tools/analysis/analysis.h"
#include "tools/text/text.h"

static const char *class_word(enum tm_doc_leak_class class)
{
	return class == TM_DOC_GROWING       ? "GROWING (reachable or not)"
	       : class == TM_DOC_UNREACHABLE ? "UNREACHABLE"
					     : "LIVE AT EXIT";
}

static uint64_t sum_of(uint64_t a, uint64_t b)
{
	return a == TM_DOC_UNKNOWN || b == TM_DOC_UNKNOWN ? TM_DOC_UNKNOWN : a + b;
}

static void print_first_line(struct tm_text *t, const struct tm_document *doc,
			     const struct tm_doc_leak *leak, const struct tm_doc_site *site)
{
	char rate[32], low[32], high[32], bytes[24], more[24];
	char tier[40] = "", sure[32] = "";

	if (site->tier)
		snprintf(tier, sizeof(tier), "  tier %s", tm_document_tier_name(site->tier));
	if (!isnan(leak->confidence))
		snprintf(sure, sizeof(sure), "  confidence %.3f", leak->confidence);
	(void)doc;
	if (leak->class == TM_DOC_GROWING && leak->ci95.count == 2)
		tm_text_prose(t, TM_TEXT_BAD, 3, "#%s %s  %s [%s..%s]  live %s in %s objects%s%s",
			      tm_text_count(leak->rank), class_word(leak->class),
			      tm_text_rate(rate, leak->slope_bytes_per_h),
			      tm_text_rate(low, leak->ci95.at[0]) + 1,
			      tm_text_rate(high, leak->ci95.at[1]) + 1,
			      tm_text_bytes(bytes, leak->live_bytes),
			      tm_text_count(leak->live_objs), tier, sure);
	else if (leak->class == TM_DOC_UNREACHABLE)
		tm_text_prose(t, TM_TEXT_BAD, 3,
			      "#%s %s  %s objects, %s direct and %s indirect%s%s",
			      tm_text_count(leak->rank), class_word(leak->class),
			      tm_text_count(sum_of(leak->direct_objs, leak->indirect_objs)),
			      tm_text_bytes(bytes, leak->direct),
			      tm_text_bytes(more, leak->indirect), tier, sure);
	else
		tm_text_prose(t, TM_TEXT_BAD, 3,
			      "#%s %s  %s objects, %s"
			      " bytes (%s), exact%s",
			      tm_text_count(leak->rank), class_word(leak->class),
			      tm_text_count(leak->live_objs), tm_text_count(leak->live_bytes),
			      tm_text_bytes(bytes, leak->live_bytes), tier);
}

/* Prints the shares of live objects by age, in windows. */
static void print_ages(struct tm_text *t, const struct tm_document *doc,
		       const struct tm_doc_site *site)
{
	static const struct {
		unsigned from, to;
		const char *name;
	} range[] = {{0, 6, "<1m"}, {6, 10, "1-17m"}, {10, 12, "17m-1h"}, {12, 64, ">1h"}};
	uint64_t all = 0, sum[TM_ARRAY_LEN(range)] = {0};
	char text[160];
	int at = 0;

	for (size_t i = 0; i < site->age_hist_log2s.count; i++) {
		for (size_t r = 0; r < TM_ARRAY_LEN(range); r++) {
			if (i >= range[r].from && i < range[r].to)
				sum[r] += site->age_hist_log2s.at[i];
		}
		all += site->age_hist_log2s.at[i];
	}
	if (all == 0)
		return;
	text[0] = '\0';
	for (size_t r = 0; doc->capture.windows > 1 && r < TM_ARRAY_LEN(range); r++) {
		if (sum[r])
			at += snprintf(text + at, sizeof(text) - (size_t)at, "%s %.0f%%  ",
				       range[r].name, 100 * (double)sum[r] / (double)all);
	}
	if (text[0])
		tm_text_line(t, TM_TEXT_PLAIN, "   ages  %ssizes %s..%s bytes, %.0f%% rounding",
			     text, tm_text_count(site->size_min), tm_text_count(site->size_max),
			     site->slot_bytes
				     ? 100 * (double)(site->slot_bytes - site->live_bytes) /
					       (double)site->slot_bytes
				     : 0);
	else
		tm_text_line(t, TM_TEXT_PLAIN, "   sizes %s..%s bytes",
			     tm_text_count(site->size_min), tm_text_count(site->size_max));
}

/* Prints the evidence, as much per line as the terminal is wide. */
static void print_evidence(struct tm_text *t, const struct tm_doc_leak *leak)
{
	const size_t indent = strlen("   evidence  ");
	size_t width = t->width ? t->width : 120;
	char line[600] = "";
	size_t at = 0, lines = 0;

	for (size_t i = 0; i < leak->evidence.count; i++) {
		const char *text = leak->evidence.at[i];

		if (at > 0 && indent + at + 2 + strlen(text) > width) {
			tm_text_prose(t, TM_TEXT_PLAIN, 13, "%s%s",
				      lines++ ? "             " : "   evidence  ", line);
			at = 0;
		}
		if (at + strlen(text) + 3 > sizeof(line))
			continue;
		at += (size_t)snprintf(line + at, sizeof(line) - at, "%s%s", at ? "; " : "", text);
	}
	if (at > 0)
		tm_text_prose(t, TM_TEXT_PLAIN, 13, "%s%s",
			      lines ? "             " : "   evidence  ", line);
}

static void print_leak(struct tm_text *t, const struct tm_document *doc,
		       const struct tm_doc_leak *leak)
{
	const struct tm_doc_site *site = tm_document_site(doc, leak->site);

	if (site == NULL)
		return;
	tm_text_line(t, TM_TEXT_PLAIN, "%s", "");
	print_first_line(t, doc, leak, site);
	tm_text_stack(t, doc, site, 3);
	print_evidence(t, leak);
	print_ages(t, doc, site);
	for (size_t i = 0; i < leak->holders.count; i++)
		tm_text_prose(t, TM_TEXT_PLAIN, 12, "   held by  %s", leak->holders.at[i]);
	if (leak->hint)
		tm_text_prose(t, TM_TEXT_PLAIN, 9, "   hint  %s", leak->hint);
}

/*
 * Length of the windows where they took longer than requested, since a census may be slow or late.
 */
static const char *name_length_of(const struct tm_document *doc, char buf[48])
{
	const struct tm_doc_capture *c = &doc->capture;
	char time[24];

	buf[0] = '\0';
	if (c->windows == 0 || c->windows == TM_DOC_UNKNOWN || c->t1_unix_ns <= c->t0_unix_ns)
		return buf;
	uint64_t mean_ms = (c->t1_unix_ns - c->t0_unix_ns) / 1000000 / (c->windows + 1);
	if (mean_ms > c->window_ms + c->window_ms / 2)
		snprintf(buf, 48, "   windows took %s on average", tm_text_time(time, mean_ms));
	return buf;
}

static void print_tests(struct tm_text *t, const struct tm_document *doc)
{
	char window[24], longer[48];

	if (doc->capture.windows != TM_DOC_UNKNOWN)
		tm_text_prose(t, TM_TEXT_DIM, 2,
			      "windows %" PRIu64
			      " of %s   %zu sites, false discoveries at most 1%%%s",
			      doc->capture.windows, tm_text_time(window, doc->capture.window_ms),
			      doc->sites.count, name_length_of(doc, longer));
}

/* What the last pass did: time, amount, cost. */
static const char *name_pass(const struct tm_document *doc, char *buf, size_t size)
{
	const struct tm_doc_scans *s = &doc->scan;
	char ago[24], bytes[24], stopped[96] = "no other thread to stop";
	bool runs = doc->process.ended == TM_DOC_RUNNING;
	uint64_t end = doc->capture.t1_unix_ns;

	if (s->threads_stopped && s->threads_stopped != TM_DOC_UNKNOWN)
		snprintf(stopped, sizeof(stopped),
			 "%" PRIu64 " threads stood still for %" PRIu64 ".%" PRIu64 "ms",
			 s->threads_stopped, s->stopped_us / 1000, s->stopped_us % 1000 / 100);
	snprintf(buf, size, "%s %s, the last %s %s; %s read, %s", tm_text_count(s->passes),
		 s->passes == 1 ? "pass" : "passes",
		 tm_text_time(ago, end > s->at_unix_ns ? (end - s->at_unix_ns) / 1000000 : 0),
		 runs ? "ago" : "before the end", tm_text_bytes(bytes, s->read_bytes), stopped);
	return buf;
}

/* What a scan skips: in a running process, the blocks of the window of its last pass. */
static const char *name_unjudged(const struct tm_document *doc, char buf[120])
{
	const struct tm_doc_scans *s = &doc->scan;
	char bytes[24], time[24];

	buf[0] = '\0';
	if (s->young_objs && s->young_objs != TM_DOC_UNKNOWN &&
	    doc->process.ended == TM_DOC_RUNNING)
		snprintf(buf, 120, ", %s objects (%s) younger than %s not judged",
			 tm_text_count(s->young_objs), tm_text_bytes(bytes, s->young_bytes),
			 tm_text_time(time, doc->capture.window_ms));
	return buf;
}

/*
 * Prints the scan's result; "none ran", "nothing was found" and "something was found" must read
 * differently.
 */
static void print_scan(struct tm_text *t, const struct tm_document *doc)
{
	const struct tm_doc_scans *s = &doc->scan;
	const char *why = s->why ? s->why : "not told";
	char pass[240], bytes[24], young[120];

	switch (s->state) {
	case TM_DOC_NEVER: tm_text_prose(t, TM_TEXT_UNSURE, 6, "scan  never ran: %s", why); return;
	case TM_DOC_ONCE:
		tm_text_prose(t, TM_TEXT_UNSURE, 6, "scan  undecided, it takes two passes: %s",
			      name_pass(doc, pass, sizeof(pass)));
		break;
	case TM_DOC_NOTHING:
		tm_text_prose(t,
			      s->young_objs && s->young_objs != TM_DOC_UNKNOWN ? TM_TEXT_UNSURE
									       : TM_TEXT_DIM,
			      6, "scan  nothing unreachable%s: %s", name_unjudged(doc, young),
			      name_pass(doc, pass, sizeof(pass)));
		break;
	case TM_DOC_LOST:
		tm_text_prose(t, TM_TEXT_DIM, 6, "scan  %s objects unreachable, %s: %s",
			      tm_text_count(s->found_objs), tm_text_bytes(bytes, s->found_bytes),
			      name_pass(doc, pass, sizeof(pass)));
		break;
	default: return; /* of several processes, or from an older release */
	}
	if (s->why)
		tm_text_prose(t, TM_TEXT_UNSURE, 6, "      no new pass: %s", s->why);
}

static void print_watch(struct tm_text *t, const struct tm_document *doc, size_t top)
{
	size_t n = 0;

	if (doc->watch.count)
		tm_text_line(t, TM_TEXT_PLAIN, "%s", "");
	for (; n < doc->watch.count && n < top; n++) {
		const struct tm_doc_watch *w = &doc->watch.at[n];
		const struct tm_doc_site *s = tm_document_site(doc, w->site);
		char name[300], bytes[24];

		if (s == NULL)
			continue;
		tm_analysis_name_frame(doc, tm_analysis_frame(doc, s), name, sizeof(name));
		tm_text_prose(t, TM_TEXT_UNSURE, 15, "%s  %s  %s  live %s: %s",
			      n ? "     " : "watch", w->site, name,
			      tm_text_bytes(bytes, s->live_bytes), w->note ? w->note : "");
	}
	if (n < doc->watch.count)
		tm_text_line(t, TM_TEXT_DIM, "       and %zu more, see --top",
			     doc->watch.count - n);
}

/* Prints memory that is in no block, which the test does not cover. */
static void print_not_counted(struct tm_text *t, const struct tm_document *doc)
{
	char text[24], line[400] = "";
	int at = 0;

	for (size_t i = 0; i < doc->mappings.count && i < 4; i++) {
		const struct tm_doc_mapping *m = &doc->mappings.at[i];

		if (m->part == NULL || strcmp(m->part, "metadata") == 0 || m->bytes < 1 << 20)
			continue;
		at += snprintf(line + at, sizeof(line) - (size_t)at, "%s%s %s", at ? ", " : "",
			       m->name, tm_text_bytes(text, m->bytes));
		if (at >= (int)sizeof(line))
			break;
	}
	if (at)
		tm_text_prose(t, TM_TEXT_DIM, 13, "not counted  %s", line);
}

void tm_text_leaks(struct tm_text *t, const struct tm_document *doc,
		   const struct tm_text_options *options)
{
	size_t shown = 0, passed = 0;

	tm_text_head(t, doc, "leak");
	print_tests(t, doc);
	print_scan(t, doc);
	for (size_t i = 0; i < doc->leaks.count; i++) {
		const struct tm_doc_leak *leak = &doc->leaks.at[i];

		if (options->site && strcmp(options->site, leak->site) != 0)
			continue;
		if (!tm_text_site_matches(doc, tm_document_site(doc, leak->site), options->filter))
			continue;
		passed++;
		if (shown < options->top) {
			print_leak(t, doc, leak);
			shown++;
		}
	}
	if (shown < passed)
		tm_text_line(t, TM_TEXT_PLAIN, "and %zu more, see --top", passed - shown);
	if (options->site == NULL)
		print_watch(t, doc, options->top);
	if (options->site == NULL)
		tm_text_gpu_leaks(t, doc, options->top);
	tm_text_line(t, TM_TEXT_PLAIN, "%s", "");
	print_not_counted(t, doc);
	tm_text_blind_spots(t, doc);
	if (doc->leaks.count && doc->process.ended == TM_DOC_RUNNING)
		tm_text_line(t, TM_TEXT_DIM, "next  tiermalloc leaks %s --site %s --who-holds",
			     tm_text_count(doc->process.pid), doc->leaks.at[0].site);
}
