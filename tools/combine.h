/* SPDX-License-Identifier: MIT */
/*
 * combine: two documents made one. Sites are matched by their id, which is the same in every run of
 * the same files; what is missing on a side counts as nothing.
 */
#ifndef TM_TOOLS_COMBINE_H
#define TM_TOOLS_COMBINE_H

#include "tools/document.h"

/* "doc" is B and gets A's figures beside its own; sites of A alone are added. */
void tm_combine_diff(struct tm_document *doc, const struct tm_document *a);

/* Adds the figures of another process of the same tree. */
void tm_combine_merge(struct tm_document *doc, const struct tm_document *more);

/* After all of them: the verdict on so many processes. */
void tm_combine_sum_up(struct tm_document *doc, size_t processes);

#endif
