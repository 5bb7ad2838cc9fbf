/* SPDX-License-Identifier: MIT */
#include "cuda_hooks/sites.h"

#include "shim/base/bits.h"
#include "shim/base/hash.h"
#include "shim/os/mem.h"

#define BITS 12u
#define CYCLES 8u /* deaths before a class is temporary */
#define SESSION_CYCLES 2u
#define REPEATS 3u /* births of one size before blocks are kept whole */
#define SHORT_MS 1000u
#define PERSISTENT_MS 10000u
#define REMEMBERED 64u /* deaths, at which both counts are halved, so that behaviour may change */

/* [lock] Record 0 is unused. One cache line each, stored in the order of creation. */
struct record {
	uint64_t key;
	uint64_t last_bytes;
	uint32_t site; /* number of the site's record of all sizes; in that record its own */
	uint32_t born, died, died_young;
	uint32_t repeats;  /* births with the same size as the birth before */
	uint32_t quiet_ms; /* time of the last death, or of the record's creation */
	bool demoted, vetted;
	/* Derived from the counts above at each death. */
	bool temporary, whole;
	uint8_t tier;
} TM_ALIGNED(TM_CACHE_LINE);

#define RECORDS ((1u << BITS) / 4 * 3)
static struct record *records; /* [lock] mapped for the first one */
static uint32_t used;
static uint16_t by_key[1u << BITS]; /* numbers; 0: unused */

_Static_assert(sizeof(struct record) == TM_CACHE_LINE, "a line");

static unsigned class_of(uint64_t bytes)
{
	unsigned top;
	if (bytes < 8)
		return (unsigned)bytes + 1;
	top = tm_bits_log2(bytes);
	return top * 8 + (unsigned)((bytes >> (top - 3)) & 7) + 16;
}

static uint32_t find(uint64_t site, unsigned class, uint32_t now_ms)
{
	uint64_t key = tm_hash_add(site, class) | 1;
	size_t at = tm_hash_slot(key, BITS);
	for (; by_key[at] != 0; at = (at + 1) % TM_ARRAY_LEN(by_key))
		if (records[by_key[at]].key == key)
			return by_key[at];
	if (used + 1 == RECORDS)
		return 0;
	if (records == NULL)
		records = tm_mem_map(RECORDS * sizeof(*records));
	if (records == NULL)
		return 0;
	used++;
	records[used] =
		(struct record){.key = key, .site = used, .quiet_ms = now_ms, .tier = TM_TIER_ALL};
	by_key[at] = (uint16_t)used;
	return used;
}

static void born(struct record *r, uint64_t bytes)
{
	r->born++;
	if (r->last_bytes == bytes)
		r->repeats++;
	r->last_bytes = bytes;
}

/* Without deaths only the passage of time makes a class persistent. */
TM_INLINE enum tm_tier tier_of(const struct record *r, uint32_t now_ms)
{
	return TM_UNLIKELY(r->died == 0 && now_ms - r->quiet_ms > PERSISTENT_MS)
		       ? TM_TIER_PERSISTENT
		       : (enum tm_tier)r->tier;
}

TM_INLINE struct tm_sites_verdict verdict_of(const struct record *r, uint32_t now_ms)
{
	const struct record *all = &records[r->site];
	struct tm_sites_verdict v = {TM_SITES_PASS, tier_of(r, now_ms), all->vetted, all->demoted};
	if (TM_UNLIKELY(all->demoted))
		return v;
	/*
	 * Written so that it compiles without branches, which alternating sizes would mispredict.
	 */
	v.use = all->temporary ? TM_SITES_VARIED : TM_SITES_PASS;
	v.use = r->whole ? TM_SITES_WHOLE : v.use;
	return v;
}

struct tm_sites_verdict tm_sites_verdict(uint32_t number, uint32_t now_ms)
{
	/* Record 0 is all zeros, and would become persistent with time. */
	return number != 0 ? verdict_of(&records[number], now_ms)
			   : (struct tm_sites_verdict){TM_SITES_PASS, TM_TIER_ALL, false, false};
}

/* Cache of record numbers: most blocks come from few classes. */
#define MEMO_BITS 8u
static struct memo {
	uint64_t site;
	uint32_t class;
	uint32_t number; /* 0: unused */
} memos[1u << MEMO_BITS];

static TM_NOINLINE uint32_t learn(struct memo *m, uint64_t site, unsigned class, uint32_t now_ms)
{
	uint32_t number = find(site, class, now_ms), all;
	if (number == 0)
		return 0;
	if (records[number].site == number) {
		all = find(site, 0, now_ms);
		if (all == 0)
			return 0;
		records[number].site = all;
	}
	*m = (struct memo){site, class, number};
	return number;
}

uint32_t tm_sites_born(uint64_t site, uint64_t bytes, uint32_t now_ms,
		       struct tm_sites_verdict *ret_verdict)
{
	unsigned class = class_of(bytes);
	struct memo *m = &memos[(site + class) * TM_HASH_GOLDEN >> (64 - MEMO_BITS)];
	uint32_t number = m->number;
	struct record *r;
	if (TM_UNLIKELY(m->site != site || m->class != class || number == 0)) {
		number = learn(m, site, class, now_ms);
		if (number == 0) {
			*ret_verdict = tm_sites_verdict(0, now_ms);
			return 0;
		}
	}
	r = &records[number];
	born(&records[r->site], bytes);
	born(r, bytes);
	*ret_verdict = verdict_of(r, now_ms);
	return number;
}

static void died(struct record *r, uint32_t age_ms, uint32_t now_ms)
{
	r->died++;
	if (age_ms < SHORT_MS)
		r->died_young++;
	if (r->died >= REMEMBERED) {
		r->died /= 2;
		r->died_young /= 2;
	}
	r->quiet_ms = now_ms;
	r->temporary = r->died >= CYCLES && r->died_young * 2 > r->died;
	r->whole = r->temporary && r->repeats >= REPEATS && r->repeats * 2 >= r->born;
	if (r->temporary)
		r->tier = TM_TIER_TEMPORARY;
	else
		r->tier = r->died >= SESSION_CYCLES && r->died_young * 2 <= r->died
				  ? TM_TIER_SESSION
				  : TM_TIER_ALL;
}

void tm_sites_died(uint32_t number, uint32_t born_ms, uint32_t now_ms)
{
	if (number == 0)
		return;
	died(&records[number], now_ms - born_ms, now_ms);
	died(&records[records[number].site], now_ms - born_ms, now_ms);
}

void tm_sites_vet(uint32_t number, bool fine)
{
	struct record *all;
	if (number == 0)
		return;
	all = &records[records[number].site];
	all->vetted = true;
	all->demoted |= !fine;
}

void tm_sites_demote(uint32_t number)
{
	if (number != 0)
		records[records[number].site].demoted = true;
}
