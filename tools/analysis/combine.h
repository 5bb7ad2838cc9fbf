/* SPDX-License-Identifier: MIT */
/*
 * combine: merges two documents. Sites are matched by id, which is the same in every run of the
 * same binaries; a site that one side lacks counts as zero there.
 */
#ifndef TM_TOOLS_COMBINE_H
#define TM_TOOLS_COMBINE_H

#include "tools/document/document.h"

/*
 * Makes "doc", which is B, a diff: adds A's figures beside B's own, and the sites that only A has.
 */
void tm_combine_diff(struct tm_document *doc, const struct tm_document *a);

/* Adds the figures of another process of the same tree to "doc". */
void tm_combine_merge(struct tm_document *doc, const struct tm_document *more);

/* To be called after the last merge: sets the verdict for that many processes. */
void tm_combine_sum_up(struct tm_document *doc, size_t processes);

#endif
