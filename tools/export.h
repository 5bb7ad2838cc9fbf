/* SPDX-License-Identifier: MIT */
/*
 * export: the document in the formats of other tools. Each writer takes the document only, writes a
 * whole file and returns false when memory or the stream has failed. Equal documents give equal
 * files.
 */
#ifndef TM_TOOLS_EXPORT_H
#define TM_TOOLS_EXPORT_H

#include "tools/document.h"

/* What a profile weighs sites by. */
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
	enum tm_view view;   /* of formats that hold one */
	uint64_t top_sites;  /* prometheus: series of single sites; 0: none */
	bool include_source; /* html: command line and source paths */
	bool uncompressed;   /* html: plain JSON inside */
};

struct tm_exporter {
	const char *name;
	bool (*write)(const struct tm_document *doc, const struct tm_export_options *options,
		      FILE *out);
	const char *content_type;
};

/* NULL where there is no such format. */
const struct tm_exporter *tm_export_find(const char *name);
/* "pprof, folded, ..." */
const char *tm_export_names(void);

const char *tm_view_name(enum tm_view view);
/* TM_VIEWS where there is no such view. */
enum tm_view tm_view_find(const char *name);
/* Bytes, but for TEMPORARY objects; 0 where it is not known. */
uint64_t tm_view_weight(const struct tm_doc_site *site, enum tm_view view);
const char *tm_view_unit(enum tm_view view);

/*
 * What a frame is called: its function, else "module+0xoffset", else the address. Never the nearest
 * symbol. Returns buf.
 */
const char *tm_frame_label(const struct tm_document *doc, const struct tm_doc_frame *frame,
			   char *buf, size_t size);
/* Of a site without a stack. */
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

/* Samples of several documents under one set of families, for serve. */
bool tm_export_prometheus_all(const struct tm_document *docs, size_t count,
			      const struct tm_export_options *o, FILE *out);

/* A JSON string, quotes included; null of NULL. tools/json_out.c */
void tm_json_put_text(FILE *out, const char *text);

#endif
