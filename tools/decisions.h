/* SPDX-License-Identifier: MIT */
/*
 * decisions: the ledger's table of decisions, joined with what the account says of the same call sites
 * and with the functions' names.
 */
#ifndef TM_TOOLS_DECISIONS_H
#define TM_TOOLS_DECISIONS_H

#include "tools/ledger.h"
#include "tools/symbols.h"

struct tm_decision {
	const struct tm_ledger_decision *record;
	uint64_t live_bytes,
		bytes;      /* of the site and, where the record has one, the height; all sizes */
	uint64_t order;     /* bytes of the whole return address */
	char place[128];    /* BUILDID+0xOFFSET, or FILE+0xOFFSET */
	char function[192]; /* "insert (cache.cpp:12)", or FILE+0xOFFSET */
	bool split;         /* there are finer records of this return address */
};

struct tm_decisions {
	struct tm_decision *at; /* owned; most bytes first, a site's finer records behind it */
	size_t count;
	uint16_t *unused_lines; /* owned; of rules that decided nothing */
	size_t unused_count;
	uint64_t lost; /* sites that found no room in the table */
};

/* 0; or -1 after one line on standard error. `ledger` must outlive the result. */
int tm_decisions_read(struct tm_decisions *ret, const struct tm_ledger *ledger,
		      const char *debug_dir);
void tm_decisions_free(struct tm_decisions *decisions);

/* "rule", "learned"...; by the ledger's numbers. */
const char *tm_decisions_authority(uint8_t authority);
/* A sentence that says what the word stands for. */
const char *tm_decisions_meaning(uint8_t authority);

#endif
