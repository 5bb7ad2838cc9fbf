/* SPDX-License-Identifier: MIT */
/*
 * holders: finds what points to the blocks of a site in a running process, from outside: searches
 * its writable memory for words that point into those blocks. For pointers that lie in other blocks
 * it searches what holds those, and so on, up to a variable, a stack, or memory outside the heap.
 */
#ifndef TM_TOOLS_HOLDERS_H
#define TM_TOOLS_HOLDERS_H

#include "tools/analysis/analysis.h"

/*
 * Appends lines to "ret_lines", from the nearest holder up. Needs the right to read the process's
 * memory; otherwise it appends one line that says why it failed.
 */
void tm_holders_find(struct tm_document *doc, struct tm_ledger *ledger, size_t site,
		     struct tm_doc_texts *ret_lines);

#endif
