/* SPDX-License-Identifier: MIT */
/*
 * holders: what points to the blocks of a site in a running process, read from outside: its writable
 * memory is searched for words that lie in those blocks. Of blocks that hold them, what holds those,
 * and so on up to a variable, a stack, or memory of others.
 */
#ifndef TM_TOOLS_HOLDERS_H
#define TM_TOOLS_HOLDERS_H

#include "tools/analysis.h"

/*
 * Lines, from the nearest holder up, appended to "ret_lines". Needs the right to read the process's
 * memory; says in the one line that is appended why nothing can be told.
 */
void tm_holders_find(struct tm_document *doc, struct tm_ledger *ledger, size_t site,
		     struct tm_doc_texts *ret_lines);

#endif
