/* SPDX-License-Identifier: MIT */
#include "shim/scan/scan_suspects.h"

#include "shim/base/hash.h"
#include "shim/base/ledger_format.h"
#include "shim/heap/account.h"
#include "shim/ledger/ledger.h"

/* So many unreachable objects of a site, and half of them freed: its pointers are hidden. */
#define HIDDEN_MIN 8u
#define PROBES 64u
#define TABLE_BITS 11
_Static_assert(TM_LEDGER_SUSPECTS == 1u << TABLE_BITS, "by a hash");

static struct tm_ledger_suspect *suspects(void)
{
	return tm_ledger_area(TM_LEDGER_SUSPECTS_AT,
			      TM_LEDGER_SUSPECTS * sizeof(struct tm_ledger_suspect));
}

/* NULL: the table is full, or the site has no name. */
static struct tm_ledger_suspect *suspect_of(const struct tm_row *row)
{
	struct tm_ledger_suspect *table = suspects();
	uint64_t key = (uint64_t)row->site | (uint64_t)row->height << 48;
	size_t at = (size_t)tm_hash_slot(key, TABLE_BITS);

	if (table == NULL || row->site == 0)
		return NULL;
	for (unsigned n = 0; n < PROBES; n++, at = (at + 1) % TM_LEDGER_SUSPECTS) {
		struct tm_ledger_suspect *s = &table[at];

		if (s->site == row->site && s->height == row->height)
			return s;
		if (s->site != 0)
			continue;
		s->site = row->site;
		s->height = row->height;
		return s;
	}
	return NULL;
}

void tm_scan_suspects_begin(void)
{
	struct tm_ledger_suspect *s = suspects();

	for (size_t i = 0; s != NULL && i < TM_LEDGER_SUSPECTS; i++)
		s[i].same = 0;
}

void tm_scan_suspect_stays(const struct tm_row *row)
{
	struct tm_ledger_suspect *s = suspect_of(row);

	if (s != NULL)
		s->same++;
}

void tm_scan_suspects_learn(void)
{
	struct tm_ledger_suspect *s = suspects();

	for (size_t i = 0; s != NULL && i < TM_LEDGER_SUSPECTS; i++, s++) {
		if (s->site == 0)
			continue;
		s->judged += s->once;
		s->freed += s->once > s->same ? s->once - s->same : 0;
		s->once = 0;
		if (s->judged >= HIDDEN_MIN && s->freed * 2 >= s->judged)
			s->hidden = 1;
	}
}

bool tm_scan_suspect(const struct tm_row *row)
{
	struct tm_ledger_suspect *s = suspect_of(row);

	if (s == NULL)
		return false;
	if (s->once != UINT32_MAX)
		s->once++;
	return s->hidden != 0;
}
