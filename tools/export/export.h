/* SPDX-License-Identifier: MIT */
/*
 * export: writes the document in the formats of other tools. Each writer uses only the document,
 * writes a whole file and returns false if memory or the stream has failed. Equal documents give
 * equal files.
 */
#ifndef TM_TOOLS_EXPORT_H
#define TM_TOOLS_EXPORT_H

#include "tools/document/document.h"

/* What a profile weights sites by. */
enum tm_view {
	TM_VIEW_LIVE,
	TM_VIEW_GROWTH,
	TM_VIEW_ALLOC,
	TM_VIEW_TEMPORARY,
	TM_VIEW_PINNED,
	TM_VIEW_UNREACHABLE,
	TM_VIEWS,
};

struct tm_export_options {
	enum tm_view view;   /* for formats that hold only one */
	uint64_t top_sites;  /* prometheus: number of sites that get series of their own */
	bool include_source; /* html: command line and source paths */
	bool uncompressed;   /* html: plain JSON inside */
};

struct tm_exporter {
	const char *name;
	bool (*write)(const struct tm_document *doc, const struct tm_export_options *options,
		      FILE *out);
	const char *content_type;
};

/* The exporter of that name, or NULL. */
const struct tm_exporter *tm_export_find(const char *name);
/* All names, as "pprof, folded, ...". */
const char *tm_export_names(void);

const char *tm_view_name(enum tm_view view);
/* The view of that name, or TM_VIEWS. */
enum tm_view tm_view_find(const char *name);
/* Weight of a site: bytes, except objects for TM_VIEW_TEMPORARY; 0 if unknown. */
uint64_t tm_view_weight(const struct tm_doc_site *site, enum tm_view view);
const char *tm_view_unit(enum tm_view view);

/*
 * Label of a frame: its function, else "module+0xoffset", else the address; never the nearest
 * symbol. Returns buf.
 */
const char *tm_frame_label(const struct tm_document *doc, const struct tm_doc_frame *frame,
			   char *buf, size_t size);
/* Label of a site without a stack. */
#define TM_NO_STACK "(other sites)"

bool tm_export_pprof(const struct tm_document *doc, const struct tm_export_options *o, FILE *out);
bool tm_export_folded(const struct tm_document *doc, const struct tm_export_options *o, FILE *out);
bool tm_export_speedscope(const struct tm_document *doc, const struct tm_export_options *o,
			  FILE *out);
bool tm_export_chrome(const struct tm_document *doc, const struct tm_export_options *o, FILE *out);
bool tm_export_prometheus(const struct tm_document *doc, const struct tm_export_options *o,
			  FILE *out);
bool tm_export_heap_v2(const struct tm_document *doc, const struct tm_export_options *o, FILE *out);
bool tm_export_json(const struct tm_document *doc, const struct tm_export_options *o, FILE *out);
bool tm_export_html(const struct tm_document *doc, const struct tm_export_options *o, FILE *out);

/* Metrics of several documents grouped by family, for serve. */
bool tm_export_prometheus_all(const struct tm_document *docs, size_t count,
			      const struct tm_export_options *o, FILE *out);

/* Writes a JSON string with its quotes; null for NULL. tools/export/json_out.c */
void tm_json_put_text(FILE *out, const char *text);

#endif
