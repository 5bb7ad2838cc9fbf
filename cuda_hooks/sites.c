/* SPDX-License-Identifier: MIT */
#include "cuda_hooks/sites.h"

#include "shim/base/bits.h"
#include "shim/base/hash.h"

#define BITS 12u
#define CYCLES 8u /* before anything is believed */
#define SESSION_CYCLES 2u
#define REPEATS 3u /* of one size */
#define SHORT_MS 1000u
#define PERSISTENT_MS 10000u
#define REMEMBERED 64u /* deaths; then both counts are halved, so that habits may change */

/* [lock] of the hooks. Record 0 is nobody's. */
struct record {
	uint64_t key; /* 0: unused */
	uint64_t last_bytes;
	uint32_t site; /* number of the record of all sizes; its own for that one */
	uint32_t born, died, died_young;
	uint32_t repeats;  /* births of the size that was born before */
	uint32_t quiet_ms; /* since when nobody died */
	bool demoted, vetted;
};

static struct record records[1u << BITS];
static uint32_t used;

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
	for (;; at = (at + 1) % TM_ARRAY_LEN(records)) {
		if (at == 0)
			continue;
		if (records[at].key == key)
			return (uint32_t)at;
		if (records[at].key == 0)
			break;
	}
	if (used >= TM_ARRAY_LEN(records) / 4 * 3)
		return 0;
	used++;
	records[at] = (struct record){.key = key, .site = (uint32_t)at, .quiet_ms = now_ms};
	return (uint32_t)at;
}

static void born(struct record *r, uint64_t bytes)
{
	r->born++;
	if (r->last_bytes == bytes)
		r->repeats++;
	r->last_bytes = bytes;
}

TM_INLINE bool is_temporary(const struct record *r)
{
	return r->died >= CYCLES && r->died_young * 2 > r->died;
}

TM_INLINE enum tm_tier tier_of(const struct record *r, uint32_t now_ms)
{
	if (is_temporary(r))
		return TM_TIER_TEMPORARY;
	if (r->died == 0)
		return now_ms - r->quiet_ms > PERSISTENT_MS ? TM_TIER_PERSISTENT : TM_TIER_ALL;
	return r->died >= SESSION_CYCLES && r->died_young * 2 <= r->died ? TM_TIER_SESSION
									 : TM_TIER_ALL;
}

TM_INLINE struct tm_sites_verdict verdict_of(const struct record *r, uint32_t now_ms)
{
	const struct record *all = &records[r->site];
	struct tm_sites_verdict v = {TM_SITES_PASS, tier_of(r, now_ms), all->vetted, all->demoted};
	if (all->demoted)
		return v;
	if (is_temporary(r) && r->repeats >= REPEATS && r->repeats * 2 >= r->born)
		v.use = TM_SITES_WHOLE;
	else if (is_temporary(all))
		v.use = TM_SITES_VARIED;
	return v;
}

struct tm_sites_verdict tm_sites_verdict(uint32_t number, uint32_t now_ms)
{
	/* Record 0 is all zero, but time passes. */
	return number != 0 ? verdict_of(&records[number], now_ms)
			   : (struct tm_sites_verdict){TM_SITES_PASS, TM_TIER_ALL, false, false};
}

/* Most blocks come from few classes. */
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
	struct record *all = &records[records[number].site];
	if (number == 0)
		return;
	all->vetted = true;
	all->demoted |= !fine;
}

void tm_sites_demote(uint32_t number)
{
	if (number != 0)
		records[records[number].site].demoted = true;
}

void tm_sites_clear(void)
{
	__builtin_memset(records, 0, sizeof(records));
	__builtin_memset(memos, 0, sizeof(memos));
	used = 0;
}
