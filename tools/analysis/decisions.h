/* SPDX-License-Identifier: MIT */
/*
 * decisions: the ledger's table of tier decisions, joined with the account of the same call sites
 * and with function names.
 */
#ifndef TM_TOOLS_DECISIONS_H
#define TM_TOOLS_DECISIONS_H

#include "tools/analysis/symbols.h"
#include "tools/ledger/ledger.h"

struct tm_decision {
	const struct tm_ledger_decision *record;
	uint64_t live_bytes,
		/* of the site and, if the record has one, of the stack height; all sizes */
		bytes;
	uint64_t order;     /* sort key: bytes of the whole return address */
	char place[128];    /* BUILDID+0xOFFSET, or FILE+0xOFFSET */
	char function[192]; /* "insert (cache.cpp:12)", or FILE+0xOFFSET */
	bool split;         /* there are finer records for this return address */
};

struct tm_decisions {
	struct tm_decision *at; /* owned; by falling bytes, a site's finer records after it */
	size_t count;
	uint16_t *unused_lines; /* owned; lines of rules that decided nothing */
	size_t unused_count;
	uint64_t lost; /* sites that did not fit into the table */
};

/* Returns 0, or -1 after one line on standard error. `ledger` must outlive the result. */
int tm_decisions_read(struct tm_decisions *ret, const struct tm_ledger *ledger,
		      const char *debug_dir);
void tm_decisions_free(struct tm_decisions *decisions);

/* Name of an authority ("rule", "learned" ...), by its number in the ledger. */
const char *tm_decisions_authority(uint8_t authority);
/* A sentence that explains that name. */
const char *tm_decisions_meaning(uint8_t authority);

#endif
