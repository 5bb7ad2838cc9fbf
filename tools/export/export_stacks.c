/* SPDX-License-Identifier: MIT */
/*
 * export_stacks: writes formats that are little more than a list of stacks: folded (flamegraph.pl
 * and relatives), speedscope, jeprof's heap_v2.
 */
#include <inttypes.h>
#include <string.h>

#include "tools/export/export.h"

/* Frames of a site, innermost first; empty for one without a stack. */
static struct tm_doc_numbers frames_of(const struct tm_document *doc,
				       const struct tm_doc_site *site)
{
	static const struct tm_doc_numbers none;

	return site->stack == TM_DOC_NOWHERE ? none : doc->stacks.at[site->stack].frames;
}

/* Writes a name without the characters that separate names. */
static void put_folded_frame(const struct tm_document *doc, const struct tm_doc_frame *f, FILE *out)
{
	char label[1024];

	for (const char *c = tm_frame_label(doc, f, label, sizeof(label)); *c; c++)
		putc(*c == ';' ? ':' : *c == '\n' ? ' ' : *c, out);
	if (f->inline_of != TM_DOC_NOWHERE)
		fputs("_[i]", out);
	if (f->lang == TM_DOC_LANG_PY)
		fputs("_[py]", out);
}

bool tm_export_folded(const struct tm_document *doc, const struct tm_export_options *o, FILE *out)
{
	for (size_t i = 0; i < doc->sites.count; i++) {
		const struct tm_doc_site *s = &doc->sites.at[i];
		struct tm_doc_numbers frames = frames_of(doc, s);
		uint64_t weight = tm_view_weight(s, o->view);

		if (weight == 0)
			continue;
		if (frames.count == 0)
			fputs(TM_NO_STACK, out);
		for (size_t k = frames.count; k-- > 0;) {
			put_folded_frame(doc, &doc->frames.at[frames.at[k]], out);
			if (k)
				putc(';', out);
		}
		fprintf(out, " %" PRIu64 "\n", weight);
	}
	return !ferror(out);
}

static void put_speedscope_frames(const struct tm_document *doc, FILE *out)
{
	char label[1024];

	fputs("\"shared\":{\"frames\":[\n{\"name\":\"" TM_NO_STACK "\"}", out);
	for (size_t i = 0; i < doc->frames.count; i++) {
		const struct tm_doc_frame *f = &doc->frames.at[i];

		fputs(",\n{\"name\":", out);
		tm_json_put_text(out, tm_frame_label(doc, f, label, sizeof(label)));
		if (f->file) {
			fputs(",\"file\":", out);
			tm_json_put_text(out, f->file);
			if (f->line != 0 && f->line != TM_DOC_UNKNOWN)
				fprintf(out, ",\"line\":%" PRIu64, f->line);
		}
		putc('}', out);
	}
	fputs("\n]}", out);
}

/* Writes stacks, outermost frame first; frame 0 stands for "no stack". */
static void put_speedscope_stacks(const struct tm_document *doc, enum tm_view view, FILE *out)
{
	const char *between = "\n";

	for (size_t i = 0; i < doc->sites.count; i++) {
		struct tm_doc_numbers frames = frames_of(doc, &doc->sites.at[i]);

		if (tm_view_weight(&doc->sites.at[i], view) == 0)
			continue;
		fputs(between, out);
		between = ",\n";
		putc('[', out);
		for (size_t k = frames.count; k-- > 0;)
			fprintf(out, "%" PRIu64 "%s", frames.at[k] + 1, k ? "," : "");
		fputs(frames.count ? "]" : "0]", out);
	}
}

static void put_speedscope_profile(const struct tm_document *doc, enum tm_view view, FILE *out)
{
	uint64_t total = 0;
	const char *between = "";

	for (size_t i = 0; i < doc->sites.count; i++)
		total += tm_view_weight(&doc->sites.at[i], view);
	fprintf(out, "{\"type\":\"sampled\",\"name\":\"%s %s\",\"unit\":\"%s\",\"startValue\":0,",
		tm_view_name(view), tm_view_unit(view),
		strcmp(tm_view_unit(view), "bytes") == 0 ? "bytes" : "none");
	fprintf(out, "\"endValue\":%" PRIu64 ",\"samples\":[", total);
	put_speedscope_stacks(doc, view, out);
	fputs("\n],\"weights\":[", out);
	for (size_t i = 0; i < doc->sites.count; i++) {
		uint64_t weight = tm_view_weight(&doc->sites.at[i], view);

		if (weight == 0)
			continue;
		fprintf(out, "%s%" PRIu64, between, weight);
		between = ",";
	}
	fputs("]}", out);
}

bool tm_export_speedscope(const struct tm_document *doc, const struct tm_export_options *o,
			  FILE *out)
{
	fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n", out);
	fprintf(out, "\"exporter\":\"tiermalloc@%s\",\n\"name\":",
		doc->tool.version ? doc->tool.version : "");
	tm_json_put_text(out, doc->process.program ? doc->process.program : "tiermalloc");
	fprintf(out, ",\n\"activeProfileIndex\":%d,\n", (int)o->view);
	put_speedscope_frames(doc, out);
	fputs(",\n\"profiles\":[", out);
	for (unsigned view = 0; view < TM_VIEWS; view++) {
		fputs(view ? ",\n" : "\n", out);
		put_speedscope_profile(doc, view, out);
	}
	fputs("\n]}\n", out);
	return !ferror(out);
}

static uint64_t known(uint64_t value)
{
	return value == TM_DOC_UNKNOWN ? 0 : value;
}

static void put_heap_counts(const struct tm_doc_site *s, FILE *out)
{
	fprintf(out, "  t*: %" PRIu64 ": %" PRIu64 " [%" PRIu64 ": %" PRIu64 "]\n",
		known(s->live_objs), known(s->live_bytes), known(s->alloc_objs),
		known(s->alloc_bytes));
}

/* Writes a mapping as /proc/PID/maps has it, where a line break is \012. */
static void put_mapping(const struct tm_doc_module *m, FILE *out)
{
	fprintf(out, "%" PRIx64 "-%" PRIx64 " r-xp %08" PRIx64 " 00:00 0 ", m->base, m->end,
		known(m->offset));
	for (const char *c = m->path; *c; c++) {
		if (*c == '\n')
			fputs("\\012", out);
		else
			putc(*c, out);
	}
	putc('\n', out);
}

/* Writes jemalloc's text format; the period is 1, since the counts are complete. */
bool tm_export_heap_v2(const struct tm_document *doc, const struct tm_export_options *o, FILE *out)
{
	struct tm_doc_site total = {0};

	(void)o;
	for (size_t i = 0; i < doc->sites.count; i++) {
		const struct tm_doc_site *s = &doc->sites.at[i];

		total.live_objs += known(s->live_objs);
		total.live_bytes += known(s->live_bytes);
		total.alloc_objs += known(s->alloc_objs);
		total.alloc_bytes += known(s->alloc_bytes);
	}
	fputs("heap_v2/1\n", out);
	put_heap_counts(&total, out);
	for (size_t i = 0; i < doc->sites.count; i++) {
		struct tm_doc_numbers frames = frames_of(doc, &doc->sites.at[i]);

		putc('@', out);
		for (size_t k = 0; k < frames.count; k++) {
			const struct tm_doc_frame *f = &doc->frames.at[frames.at[k]];

			if (f->inline_of == TM_DOC_NOWHERE && known(f->addr))
				fprintf(out, " 0x%" PRIx64, f->addr);
		}
		if (frames.count == 0)
			fputs(" 0x0", out);
		putc('\n', out);
		put_heap_counts(&doc->sites.at[i], out);
	}
	fputs("\nMAPPED_LIBRARIES:\n", out);
	for (size_t i = 0; i < doc->modules.count; i++) {
		const struct tm_doc_module *m = &doc->modules.at[i];

		if (m->path && m->base != TM_DOC_UNKNOWN && m->end != TM_DOC_UNKNOWN)
			put_mapping(m, out);
	}
	return !ferror(out);
}
