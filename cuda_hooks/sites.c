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

uint32_t tm_sites_born(uint64_t site, uint64_t bytes, uint32_t now_ms)
{
	uint32_t number = find(site, class_of(bytes), now_ms), all;
	if (TM_UNLIKELY(number == 0))
		return 0;
	if (TM_UNLIKELY(records[number].site == number)) {
		all = find(site, 0, now_ms);
		if (all == 0)
			return 0;
		records[number].site = all;
	}
	born(&records[records[number].site], bytes);
	born(&records[number], bytes);
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

static bool is_temporary(const struct record *r)
{
	return r->died >= CYCLES && r->died_young * 2 > r->died;
}

static enum tm_tier tier_of(const struct record *r, uint32_t now_ms)
{
	if (is_temporary(r))
		return TM_TIER_TEMPORARY;
	if (r->died == 0)
		return now_ms - r->quiet_ms > PERSISTENT_MS ? TM_TIER_PERSISTENT : TM_TIER_ALL;
	return r->died >= SESSION_CYCLES && r->died_young * 2 <= r->died ? TM_TIER_SESSION
									 : TM_TIER_ALL;
}

struct tm_sites_verdict tm_sites_verdict(uint32_t number, uint32_t now_ms)
{
	const struct record *r = &records[number], *all = &records[r->site];
	struct tm_sites_verdict v = {TM_SITES_PASS, TM_TIER_ALL, false, false};
	if (number == 0)
		return v;
	v.tier = tier_of(r, now_ms);
	v.vetted = all->vetted;
	v.demoted = all->demoted;
	if (all->demoted)
		return v;
	if (is_temporary(r) && r->repeats >= REPEATS && r->repeats * 2 >= r->born)
		v.use = TM_SITES_WHOLE;
	else if (is_temporary(all))
		v.use = TM_SITES_VARIED;
	return v;
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
	used = 0;
}
