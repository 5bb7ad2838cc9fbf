/* SPDX-License-Identifier: MIT */
#include "tools/export/export.h"

#include <inttypes.h>
#include <string.h>

static const struct tm_exporter exporters[] = {
	{"pprof", tm_export_pprof, "application/octet-stream"},
	{"folded", tm_export_folded, "text/plain; charset=utf-8"},
	{"speedscope", tm_export_speedscope, "application/json"},
	{"chrome", tm_export_chrome, "application/json"},
	{"prometheus", tm_export_prometheus, "text/plain; version=0.0.4; charset=utf-8"},
	{"heap_v2", tm_export_heap_v2, "text/plain; charset=utf-8"},
	{"json", tm_export_json, "application/json"},
	{"html", tm_export_html, "text/html; charset=utf-8"},
};

static const struct {
	const char *name, *unit;
	size_t offset; /* offset of the field in a site */
} views[TM_VIEWS] = {
	[TM_VIEW_LIVE] = {"live", "bytes", offsetof(struct tm_doc_site, live_bytes)},
	[TM_VIEW_GROWTH] = {"growth", "bytes", offsetof(struct tm_doc_site, growth_bytes)},
	[TM_VIEW_ALLOC] = {"alloc", "bytes", offsetof(struct tm_doc_site, alloc_bytes)},
	[TM_VIEW_TEMPORARY] = {"temporary", "objects",
			       offsetof(struct tm_doc_site, temporary_objs)},
	[TM_VIEW_PINNED] = {"pinned", "bytes", offsetof(struct tm_doc_site, frag_pinned_bytes)},
	[TM_VIEW_UNREACHABLE] = {"unreachable", "bytes",
				 offsetof(struct tm_doc_site, unreachable_bytes)},
};

const struct tm_exporter *tm_export_find(const char *name)
{
	for (size_t i = 0; i < TM_ARRAY_LEN(exporters); i++) {
		if (strcmp(exporters[i].name, name) == 0)
			return &exporters[i];
	}
	return NULL;
}

const char *tm_export_names(void)
{
	return "pprof, folded, speedscope, chrome, prometheus, heap_v2, json, html";
}

const char *tm_view_name(enum tm_view view)
{
	return views[view].name;
}

const char *tm_view_unit(enum tm_view view)
{
	return views[view].unit;
}

enum tm_view tm_view_find(const char *name)
{
	unsigned view = 0;

	while (view < TM_VIEWS && strcmp(views[view].name, name) != 0)
		view++;
	return view;
}

uint64_t tm_view_weight(const struct tm_doc_site *site, enum tm_view view)
{
	uint64_t weight;

	memcpy(&weight, (const char *)site + views[view].offset, sizeof(weight));
	return weight == TM_DOC_UNKNOWN ? 0 : weight;
}

const char *tm_frame_label(const struct tm_document *doc, const struct tm_doc_frame *f, char *buf,
			   size_t size)
{
	const struct tm_doc_module *m =
		f->module < doc->modules.count ? &doc->modules.at[f->module] : NULL;

	if (f->fn) {
		snprintf(buf, size, "%s", f->fn);
	} else if (m && m->path && f->addr != TM_DOC_UNKNOWN) {
		const char *slash = strrchr(m->path, '/');
		uint64_t at = f->addr;

		if (m->base != TM_DOC_UNKNOWN)
			at = at - m->base + (m->offset == TM_DOC_UNKNOWN ? 0 : m->offset);
		snprintf(buf, size, "%s+0x%" PRIx64, slash ? slash + 1 : m->path, at);
	} else if (f->addr != TM_DOC_UNKNOWN) {
		snprintf(buf, size, "0x%" PRIx64, f->addr);
	} else {
		snprintf(buf, size, "(unknown)");
	}
	return buf;
}

bool tm_export_json(const struct tm_document *doc, const struct tm_export_options *o, FILE *out)
{
	(void)o;
	return tm_document_write_json(doc, out);
}
