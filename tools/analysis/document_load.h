/* SPDX-License-Identifier: MIT */
/*
 * document_load: loads a document from what the user names: a ledger, or a report in JSON ('-':
 * from standard input).
 */
#ifndef TM_TOOLS_DOCUMENT_LOAD_H
#define TM_TOOLS_DOCUMENT_LOAD_H

#include "tools/document/document.h"

/* Fills an initialised document. Returns 0, or -1 after one line on standard error. */
int tm_document_load(struct tm_document *doc, const char *what);

/* The same for a ledger, but without looking up function names, which is fast. */
int tm_document_load_counts(struct tm_document *doc, const char *ledger);

#endif
