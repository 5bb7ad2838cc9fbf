/* SPDX-License-Identifier: MIT */
#include "tools/text/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "shim/base/fmt.h"
#include "shim/base/parse.h"
#include "tools/analysis/analysis.h"

#define LINE_MAX_BYTES 2048
#define PROSE_COLUMNS 24u /* with fewer columns left, the indent is omitted */

void tm_text_init(struct tm_text *t, FILE *out)
{
	const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	bool terminal = isatty(fileno(out));

	*t = (struct tm_text){.out = out};
	if (!terminal)
		return;
	t->set = tm_text_fit_set();
	t->colours = (no_colour == NULL || *no_colour == '\0') && term != NULL &&
		     strcmp(term, "dumb") != 0;
	if (columns && atoi(columns) > 0)
		t->width = (unsigned)atoi(columns);
	else if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0)
		t->width = size.ws_col;
}

static void put_line(struct tm_text *t, enum tm_text_colour colour, const char *text)
{
	static const char *const code[] = {"", "\033[1;31m", "\033[32m", "\033[33m", "\033[2m"};
	bool coloured = t->colours && colour != TM_TEXT_PLAIN;

	fprintf(t->out, "%s%s%s\n", coloured ? code[colour] : "", text, coloured ? "\033[0m" : "");
}

void tm_text_line(struct tm_text *t, enum tm_text_colour colour, const char *format, ...)
{
	char text[LINE_MAX_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	tm_text_fit_defuse(text, t->set);
	if (t->width && tm_text_fit_columns(text) > t->width) {
		size_t at = tm_text_fit_cut(text, t->width - 1);

		text[at] = '~';
		text[at + 1] = '\0';
	}
	put_line(t, colour, text);
}

/*
 * Shortens "function  file.c:12": the place is kept whole if that leaves half of the room to the
 * function.
 */
static void squeeze_name(char *name, size_t size, size_t room)
{
	char *gap = strstr(name, "  "), place[300];
	size_t behind = gap ? tm_text_fit_columns(gap) : 0;

	if (gap == NULL || tm_text_fit_columns(name) <= room || strlen(gap) >= sizeof(place)) {
		tm_text_fit_squeeze(name, room);
		return;
	}
	strcpy(place, gap);
	*gap = '\0';
	if (behind * 2 > room) {
		tm_text_fit_squeeze(name, room);
		return;
	}
	tm_text_fit_squeeze(name, room - behind);
	snprintf(name + strlen(name), size - strlen(name), "%s", place);
}

void tm_text_named(struct tm_text *t, enum tm_text_colour colour, const char *name,
		   const char *format, ...)
{
	char text[LINE_MAX_BYTES], whole[LINE_MAX_BYTES];
	va_list args;
	size_t before;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	snprintf(whole, sizeof(whole), "%s", name);
	tm_text_fit_defuse(whole, t->set);
	before = tm_text_fit_columns(text);
	if (t->width)
		squeeze_name(whole, sizeof(whole), t->width > before ? t->width - before : 0);
	tm_text_line(t, colour, "%s%s", text, whole);
}

/*
 * Bytes that fit into a row: up to the last space, or if there is none, as many as there is room
 * for.
 */
static size_t row_of(const char *text, size_t columns)
{
	size_t room = tm_text_fit_cut(text, columns), at;

	if (room == 0) /* a character two columns wide, in a row of one */
		room = tm_text_fit_cut(text, 2);
	at = room;
	if (text[room] == '\0')
		return room;
	while (at > 0 && text[at] != ' ')
		at--;
	return at ? at : room;
}

void tm_text_prose(struct tm_text *t, enum tm_text_colour colour, unsigned indent,
		   const char *format, ...)
{
	char text[LINE_MAX_BYTES], row[LINE_MAX_BYTES];
	const char *rest = text;
	unsigned before = 0;
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	tm_text_fit_defuse(text, t->set);
	if (t->width < indent + PROSE_COLUMNS)
		indent = 0;
	do {
		size_t columns = t->width > before ? t->width - before : 1;
		/* The beginning of the first row is no place to break it. */
		size_t n = t->width == 0 ? strlen(rest) : row_of(rest, columns);

		if (before == 0 && n < indent && rest[n])
			n = tm_text_fit_cut(rest, columns);
		size_t shown = n;

		while (rest[n] && shown > 0 && rest[shown - 1] == ' ')
			shown--;
		snprintf(row, sizeof(row), "%*s%.*s", (int)before, "", (int)shown, rest);
		put_line(t, colour, row);
		rest += n;
		rest += strspn(rest, " ");
		before = indent;
	} while (*rest);
}

const char *tm_text_bytes(char buf[24], uint64_t bytes)
{
	if (bytes == TM_DOC_UNKNOWN)
		return strcpy(buf, "-");
	tm_fmt_bytes(buf, 24, bytes);
	return buf;
}

const char *tm_text_count(uint64_t count)
{
	static char bufs[16][24];
	static unsigned next;
	char *buf = bufs[next++ % TM_ARRAY_LEN(bufs)];

	if (count == TM_DOC_UNKNOWN)
		return "-";
	snprintf(buf, sizeof(bufs[0]), "%" PRIu64, count);
	return buf;
}

const char *tm_text_delta(char buf[24], int64_t bytes)
{
	if (bytes == TM_DOC_UNKNOWN_DELTA)
		return strcpy(buf, "-");
	buf[0] = '-';
	tm_fmt_bytes(bytes < 0 ? buf + 1 : buf, 23, (uint64_t)(bytes < 0 ? -bytes : bytes));
	return buf;
}

const char *tm_text_rate(char buf[32], double bytes_per_h)
{
	char text[24];

	if (isnan(bytes_per_h))
		return strcpy(buf, "-");
	tm_fmt_bytes(text, sizeof(text), (uint64_t)fmin(fabs(bytes_per_h), 1e18));
	snprintf(buf, 32, "%c%s/h", bytes_per_h < 0 ? '-' : '+', text);
	return buf;
}

const char *tm_text_time(char buf[24], uint64_t ms)
{
	uint64_t s = ms / 1000;

	if (ms < 1000)
		snprintf(buf, 24, "%" PRIu64 "ms", ms);
	else if (s < 60)
		snprintf(buf, 24, "%" PRIu64 ".%" PRIu64 "s", s, ms % 1000 / 100);
	else if (s < 3600)
		snprintf(buf, 24, "%" PRIu64 "m%02" PRIu64 "s", s / 60, s % 60);
	else if (s < 48 * 3600)
		snprintf(buf, 24, "%" PRIu64 "h%02" PRIu64 "m", s / 3600, s / 60 % 60);
	else
		snprintf(buf, 24, "%" PRIu64 "d%02" PRIu64 "h", s / 86400, s / 3600 % 24);
	return buf;
}

static enum tm_text_colour colour_of(enum tm_doc_outcome outcome)
{
	return outcome == TM_DOC_FOUND          ? TM_TEXT_BAD
	       : outcome == TM_DOC_INCONCLUSIVE ? TM_TEXT_UNSURE
						: TM_TEXT_GOOD;
}

void tm_text_head(struct tm_text *t, const struct tm_document *doc, const char *what)
{
	const struct tm_doc_process *p = &doc->process;
	char up[24], age[24], ended[80], threads[32] = "", pid[32] = "";

	tm_text_prose(t,
		      strcmp(what, "leak") == 0 || strcmp(what, "top") == 0
			      ? colour_of(doc->verdict.outcome)
			      : TM_TEXT_PLAIN,
		      9, "VERDICT  %s", doc->verdict.text ? doc->verdict.text : "none");
	snprintf(ended, sizeof(ended), "%s", tm_document_ended_name(p->ended));
	if (p->ended == TM_DOC_KILLED && p->heartbeat_age_ms != TM_DOC_UNKNOWN)
		snprintf(ended, sizeof(ended),
			 "killed (no mark of a clean exit), last heard of %s ago",
			 tm_text_time(age, p->heartbeat_age_ms));
	if (p->threads != TM_DOC_UNKNOWN)
		snprintf(threads, sizeof(threads), "  %" PRIu64 " thread%s", p->threads,
			 p->threads == 1 ? "" : "s");
	if (p->pid != TM_DOC_UNKNOWN)
		snprintf(pid, sizeof(pid), " pid %s", tm_text_count(p->pid));
	tm_text_prose(
		t, TM_TEXT_PLAIN, 2, "tiermalloc %s%s  %s%s (host %s)  %s  up %s%s", what,
		strcmp(what, "top") == 0 ? "" : " report", p->program ? p->program : "?", pid,
		p->host ? p->host : "?", ended,
		tm_text_time(up,
			     doc->capture.t1_unix_ns > doc->capture.t0_unix_ns
				     ? (doc->capture.t1_unix_ns - doc->capture.t0_unix_ns) / 1000000
				     : 0),
		threads);
}

void tm_text_blind_spots(struct tm_text *t, const struct tm_document *doc)
{
	if (doc->blind_spots.count == 0)
		tm_text_line(t, TM_TEXT_DIM, "blind spots  none");
	for (size_t i = 0; i < doc->blind_spots.count; i++)
		tm_text_prose(t, TM_TEXT_DIM, 13, "%s  %s", i ? "           " : "blind spots",
			      doc->blind_spots.at[i]);
}

/* --- stacks ----------------------------------------------------------------------------------- */

static bool ends_here(const struct tm_doc_frame *f)
{
	return f->fn && (strncmp(f->fn, "__libc_start", 12) == 0 || strcmp(f->fn, "_start") == 0 ||
			 strcmp(f->fn, "start_thread") == 0 || strncmp(f->fn, "clone", 5) == 0 ||
			 strncmp(f->fn, "__clone", 7) == 0);
}

static void name_with_inlining(const struct tm_document *doc, const struct tm_doc_frame *f,
			       char *buf, size_t size)
{
	size_t at;

	tm_analysis_name_frame(doc, f, buf, size);
	at = strlen(buf);
	if (f && f->inline_of != TM_DOC_NOWHERE)
		snprintf(buf + at, size - at, "  (inlined)");
}

void tm_text_callers(struct tm_text *t, const struct tm_document *doc, uint32_t stack,
		     unsigned lines)
{
	const struct tm_doc_frame *first = tm_analysis_frame_of(doc, stack);
	char name[300];
	unsigned shown = 0;
	bool inside = false;

	if (first == NULL)
		return;
	const struct tm_doc_numbers *frames = &doc->stacks.at[stack].frames;
	bool skips = !tm_analysis_is_interpreter(doc, first);
	for (size_t i = 0; i < frames->count; i++) {
		const struct tm_doc_frame *f = &doc->frames.at[frames->at[i]];

		if (f == first) {
			inside = true;
			continue;
		}
		if (!inside)
			continue;
		if (ends_here(f) || shown == lines)
			break;
		if (tm_analysis_is_plumbing(doc, f) ||
		    (skips && tm_analysis_is_interpreter(doc, f)))
			continue;
		name_with_inlining(doc, f, name, sizeof(name));
		tm_text_named(t, TM_TEXT_DIM, name, "         <- ");
		shown++;
	}
}

void tm_text_stack(struct tm_text *t, const struct tm_document *doc, const struct tm_doc_site *site,
		   unsigned lines)
{
	const struct tm_doc_frame *first = tm_analysis_frame(doc, site);
	char name[300];

	name_with_inlining(doc, first, name, sizeof(name));
	tm_text_named(t, TM_TEXT_PLAIN, name, "   site  %s  ", site->id);
	tm_text_callers(t, doc, site->stack, lines);
}

/* --- the balance sheet ------------------------------------------------------------------------ */

static void part(struct tm_text *t, const struct tm_doc_balance *b, const char *name, int64_t bytes,
		 const char *meaning)
{
	char text[24];

	if (bytes == TM_DOC_UNKNOWN_DELTA)
		tm_text_line(t, TM_TEXT_PLAIN, "  %-12s %12s         %s", name, "-", meaning);
	else
		tm_text_line(t, TM_TEXT_PLAIN, "  %-12s %12s %6.1f%%  %s", name,
			     tm_text_delta(text, bytes),
			     b->rss_bytes && b->rss_bytes != TM_DOC_UNKNOWN
				     ? 100.0 * (double)bytes / (double)b->rss_bytes
				     : 0.0,
			     meaning);
}

void tm_text_balance(struct tm_text *t, const struct tm_document *doc)
{
	const struct tm_doc_balance *b = &doc->balance;
	char text[24], mapped[24];

	tm_text_line(t, TM_TEXT_PLAIN, "%s", "");
	tm_text_line(t, TM_TEXT_PLAIN, "balance of %s resident", tm_text_bytes(text, b->rss_bytes));
	part(t, b, "live", b->live_req, "asked for and not freed");
	part(t, b, "internal", b->internal, "rounding of those to slots");
	part(t, b, "external", b->external, "free slots among them");
	part(t, b, "cached", b->cached, "free pages, kept for reuse");
	part(t, b, "nonresident", b->nonresident,
	     "taken off: of the above, pages never touched or swapped");
	part(t, b, "metadata", b->metadata, "tables of the allocator, this account included");
	part(t, b, "other", b->other_anon, "stacks, other allocators, direct mappings");
	part(t, b, "files", b->file, "mapped files");
	part(t, b, "pinned", b->pinned, "of devices");
	part(t, b, "residual", b->residual,
	     "what nothing above explains (below 0: the parts changed while they were read)");
	for (size_t i = 0; i < doc->mappings.count; i++) {
		const struct tm_doc_mapping *m = &doc->mappings.at[i];

		if (m->bytes * 200 < b->rss_bytes && i >= 6)
			continue;
		tm_text_line(t, TM_TEXT_DIM, "    %-10s %12s  %s (%s mappings, %s)",
			     m->part ? m->part : "", tm_text_bytes(text, m->bytes), m->name,
			     tm_text_count(m->count), tm_text_bytes(mapped, m->mapped_bytes));
	}
}

/* --- which sites ------------------------------------------------------------------------------ */

struct sort_key {
	const char *name;
	uint64_t (*value)(const struct tm_doc_site *s);
};

static uint64_t known(uint64_t value)
{
	return value == TM_DOC_UNKNOWN ? 0 : value;
}
static uint64_t live_of(const struct tm_doc_site *s)
{
	return known(s->live_bytes);
}
static uint64_t objects_of(const struct tm_doc_site *s)
{
	return known(s->live_objs);
}
static uint64_t alloc_of(const struct tm_doc_site *s)
{
	return known(s->alloc_objs);
}
static uint64_t bytes_of(const struct tm_doc_site *s)
{
	return known(s->alloc_bytes);
}
static uint64_t pinned_of(const struct tm_doc_site *s)
{
	return known(s->frag_pinned_bytes);
}
static uint64_t growth_of(const struct tm_doc_site *s)
{
	return s->growth_bytes_per_h > 0 ? (uint64_t)fmin(s->growth_bytes_per_h, 1e18) : 0;
}

static const struct sort_key keys[] = {
	{"live", live_of},   {"objects", objects_of}, {"alloc", alloc_of},
	{"bytes", bytes_of}, {"pinned", pinned_of},   {"growth", growth_of},
};
static const struct sort_key *sorted_by = &keys[0];

bool tm_text_is_sort_key(const char *key)
{
	for (size_t i = 0; i < TM_ARRAY_LEN(keys); i++) {
		if (strcmp(key, keys[i].name) == 0)
			return true;
	}
	return false;
}

static int by_value(const void *a, const void *b)
{
	const struct tm_doc_site *x = *(const struct tm_doc_site *const *)a;
	const struct tm_doc_site *y = *(const struct tm_doc_site *const *)b;
	uint64_t p = sorted_by->value(x), q = sorted_by->value(y);

	if (p != q)
		return p < q ? 1 : -1;
	return x < y ? -1 : x > y; /* equal: keep the document's order */
}

static bool matches(const char *glob, const char *text)
{
	return text && tm_parse_glob(tm_str_of(glob), tm_str_of(text));
}

bool tm_text_site_matches(const struct tm_document *doc, const struct tm_doc_site *s,
			  const char *glob)
{
	if (glob == NULL || s == NULL || matches(glob, s->id))
		return true;
	if (s->stack >= doc->stacks.count)
		return false;
	const struct tm_doc_numbers *frames = &doc->stacks.at[s->stack].frames;
	for (size_t i = 0; i < frames->count; i++) {
		const struct tm_doc_frame *f = &doc->frames.at[frames->at[i]];
		const char *path =
			f->module < doc->modules.count ? doc->modules.at[f->module].path : NULL;
		const char *name = path ? strrchr(path, '/') : NULL;

		if (matches(glob, f->fn) || matches(glob, f->symbol) || matches(glob, f->file) ||
		    matches(glob, path) || (name && matches(glob, name + 1)))
			return true;
	}
	return false;
}

const struct tm_doc_site **tm_text_pick_sites(const struct tm_document *doc,
					      const struct tm_text_options *options,
					      size_t *ret_count)
{
	const struct tm_doc_site **picked = malloc((doc->sites.count + 1) * sizeof(*picked));
	size_t n = 0;

	*ret_count = 0;
	if (picked == NULL)
		return NULL;
	for (size_t i = 0; i < doc->sites.count; i++) {
		if (tm_text_site_matches(doc, &doc->sites.at[i], options->filter))
			picked[n++] = &doc->sites.at[i];
	}
	sorted_by = &keys[0];
	for (size_t i = 0; options->sort && i < TM_ARRAY_LEN(keys); i++) {
		if (strcmp(options->sort, keys[i].name) == 0)
			sorted_by = &keys[i];
	}
	qsort(picked, n, sizeof(*picked), by_value);
	*ret_count = n;
	return picked;
}
