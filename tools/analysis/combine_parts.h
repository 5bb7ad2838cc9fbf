/* SPDX-License-Identifier: MIT */
/*
 * combine_parts: what diff and merge share: sites found by id, and rows of one document added to
 * another. Texts are copied into the document that they are added to. Only for combine_*.c.
 */
#ifndef TM_TOOLS_COMBINE_PARTS_H
#define TM_TOOLS_COMBINE_PARTS_H

#include "tools/document/document.h"

/* The sites of a document, by id. Points into its list: adding a site to it makes it invalid. */
struct tm_combine_index {
	const struct tm_doc_site **at;
	size_t count;
};

/* Offsets of another document's numbers in the one that its rows were added to. */
struct tm_combine_places {
	uint32_t module, frame;
};

/* The index lies in "memory". */
struct tm_combine_index tm_combine_index(struct tm_document *memory, const struct tm_document *doc);

/* The site with that id; NULL: there is none. */
const struct tm_doc_site *tm_combine_find(const struct tm_combine_index *index, const char *id);

/* Adds the modules and frames of "from", before its sites are added. */
void tm_combine_add_modules(struct tm_document *doc, const struct tm_document *from,
			    struct tm_combine_places *ret_places);

/* Adds a site of "from" with its stack; its figures are 0. */
struct tm_doc_site *tm_combine_add_site(struct tm_document *doc, const struct tm_document *from,
					const struct tm_doc_site *old,
					const struct tm_combine_places *places);

/* Whether two texts, which may be NULL, are the same. */
bool tm_combine_is_text(const char *a, const char *b);

/* The device of "like", which is added without figures if there is none. */
struct tm_doc_gpu *tm_combine_same_gpu(struct tm_document *doc, const struct tm_doc_gpu *like);

/* Adds a row of "from" to a device, with its stack and its figures. */
struct tm_doc_gpu_site *tm_combine_add_gpu_site(struct tm_document *doc, struct tm_doc_gpu *gpu,
						const struct tm_document *from,
						const struct tm_doc_gpu_site *old,
						const struct tm_combine_places *places);

#endif
