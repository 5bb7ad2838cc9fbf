/* SPDX-License-Identifier: MIT */
#include "shim/heap/huge.h"

#include "shim/base/bits.h"
#include "shim/heap/collapse.h"
#include "shim/heap/heap.h"
#include "shim/heap/limit.h"
#include "shim/os/buddy.h"
#include "shim/os/clock.h"

/*
 * Each heap has partly used spans of many classes: once the part has this much per heap, spans
 * count as dense (H58).
 */
#define HUGE_FROM_SPAN_BYTES ((size_t)64 << 20)

/*
 * Guard against compaction: this much must stay free in pieces of 2 MiB beyond the request. Looked
 * up every LOOK_MS.
 */
#define ROOM_BYTES ((uint64_t)64 << 20)
#define LOOK_MS 1000u
/* For less than this no file is read the first time. */
#define WORTH_BYTES ((size_t)8 << 20)

struct tm_huge_state tm_huge TM_AT_START_DATA;
struct tm_huge_os tm_huge_os = {.free_bytes = tm_buddy_huge_bytes, .now_ms = tm_clock_ms};

static struct {
	_Atomic uint64_t looked_ms; /* time of the last look; 0: never */
	/* free bytes in pieces of 2 MiB at that time, less what was advised since */
	_Atomic uint64_t room;
	_Atomic bool owed[TM_PART_COUNT];
} guard;

const char *tm_huge_step_name(enum tm_huge_step step)
{
	static const char *const names[TM_HUGE_STEPS] = {"unmapped",
							 "hugetlb 1G",
							 "hugetlb 2M",
							 "transparent",
							 "hugetlb pool empty",
							 "off in the system",
							 "TIERMALLOC_HUGE=never",
							 "sparse or small",
							 "kernel short of them",
							 "refused"};

	return names[step];
}

void tm_huge_stand(uint32_t unit, size_t units, enum tm_huge_step step)
{
	for (size_t i = 0; i < units; i++)
		__atomic_store_n(&tm_zone.units[unit + i].stand, (uint8_t)step, __ATOMIC_RELAXED);
}

enum tm_huge_step tm_huge_allowed(void)
{
	if (tm_zone.huge != TM_THP_NEVER && tm_zone.huge != TM_THP_DECLINE)
		return TM_HUGE_ON_THP;
	return tm_huge.by_user ? TM_HUGE_USER_OFF : TM_HUGE_SYSTEM_OFF;
}

void tm_huge_stats(enum tm_part part, uint64_t ret_bytes[TM_HUGE_STEPS])
{
	size_t units = __atomic_load_n(&tm_zone.len, __ATOMIC_ACQUIRE) >> TM_UNIT_SHIFT;

	for (int i = 0; i < TM_HUGE_STEPS; i++)
		ret_bytes[i] = 0;
	for (size_t i = 0; i < units; i++) {
		uint8_t step = __atomic_load_n(&tm_zone.units[i].stand, __ATOMIC_RELAXED);

		if (tm_zone.units[i].part == part && step < TM_HUGE_STEPS)
			ret_bytes[step] += TM_UNIT_BYTES;
	}
	ret_bytes[TM_HUGE_UNMAPPED] = 0;
}

static bool has_room(size_t bytes)
{
	uint64_t now, then, room;

	if (!tm_limit_may_look())
		return true;
	then = atomic_load_explicit(&guard.looked_ms, memory_order_relaxed);
	room = atomic_load_explicit(&guard.room, memory_order_relaxed);
	now = tm_huge_os.now_ms();
	if (then == 0 || now - then >= LOOK_MS) {
		if (then == 0 && bytes < WORTH_BYTES)
			return true;
		room = tm_huge_os.free_bytes();
		atomic_store_explicit(&guard.looked_ms, now ? now : 1, memory_order_relaxed);
	}
	if (room < bytes + ROOM_BYTES)
		return false;
	if (room != UINT64_MAX)
		room -= bytes;
	atomic_store_explicit(&guard.room, room, memory_order_relaxed);
	return true;
}

static enum tm_huge_step advise(uint32_t page, size_t units)
{
	struct tm_unit *u = tm_zone_unit(page);
	size_t bytes = units * TM_UNIT_BYTES;

	if (!has_room(bytes)) {
		atomic_store_explicit(&guard.owed[u->part], true, memory_order_relaxed);
		tm_collapse_want((enum tm_part)u->part);
		return TM_HUGE_SCARCE;
	}
	if (tm_zone.os->hugepage(tm_zone_page_addr(page), bytes)) {
		atomic_fetch_add_explicit(&tm_huge.denied, units, memory_order_relaxed);
		return TM_HUGE_DENIED;
	}
	for (size_t i = 0; i < units; i++)
		__atomic_fetch_or(&u[i].flags, TM_UNIT_HUGE, __ATOMIC_RELAXED);
	if (u->part != TM_PART_SPAN)
		atomic_fetch_add_explicit(&tm_huge.advised, units, memory_order_relaxed);
	return TM_HUGE_ON_THP;
}

void tm_huge_advise(uint32_t page, size_t units)
{
	struct tm_unit *u = tm_zone_unit(page);

	/* by runs of units that are not advised yet */
	for (size_t at = 0, end; at < units; at = end) {
		end = at + 1;
		if (u[at].flags & (TM_UNIT_HUGE | TM_UNIT_HUGETLB))
			continue;
		while (end < units && !(u[end].flags & (TM_UNIT_HUGE | TM_UNIT_HUGETLB)))
			end++;
		tm_huge_stand(page / TM_UNIT_PAGES + (uint32_t)at, end - at,
			      advise(page + (uint32_t)at * TM_UNIT_PAGES, end - at));
	}
}

void tm_huge_decline(uint32_t page, size_t units)
{
	struct tm_unit *u = tm_zone_unit(page);

	if (tm_zone.os->nohugepage(tm_zone_page_addr(page), units * TM_UNIT_BYTES))
		return;
	for (size_t i = 0; i < units; i++)
		if (u[i].part != TM_PART_SPAN && (u[i].flags & TM_UNIT_HUGE))
			atomic_fetch_sub_explicit(&tm_huge.advised, 1, memory_order_relaxed);
	for (size_t i = 0; i < units; i++)
		__atomic_fetch_and(&u[i].flags, (uint8_t)~TM_UNIT_HUGE, __ATOMIC_RELAXED);
	tm_huge_stand(page / TM_UNIT_PAGES, units, TM_HUGE_SPARSE);
}

void tm_huge_fresh(enum tm_part part, uint32_t page, size_t bytes, size_t part_bytes)
{
	size_t first = page / TM_UNIT_PAGES;
	size_t end = (page + (bytes >> TM_PAGE_SHIFT) + TM_UNIT_PAGES - 1) / TM_UNIT_PAGES;
	void *addr = tm_zone_page_addr(page);
	bool dense = false;
	enum tm_huge_step step = TM_HUGE_SPARSE;

	if (tm_zone_unit(page)->flags & TM_UNIT_HUGETLB)
		return;
	if (part == TM_PART_SPAN)
		dense = part_bytes >= HUGE_FROM_SPAN_BYTES * tm_bits_max(tm_heap_count(), 1);
	if (tm_huge_allowed() != TM_HUGE_ON_THP)
		step = tm_huge_allowed();
	else if ((dense || tm_zone.huge == TM_THP_EAGER) && bytes >= TM_UNIT_BYTES)
		step = advise(page, bytes / TM_UNIT_BYTES);
	tm_huge_stand((uint32_t)first, end - first, step);
	if (step != TM_HUGE_ON_THP &&
	    (tm_zone.huge == TM_THP_ALWAYS || tm_zone.huge == TM_THP_DECLINE))
		(void)tm_zone.os->nohugepage(addr, bytes);
}

bool tm_huge_is_owed(enum tm_part part)
{
	return atomic_load_explicit(&guard.owed[part], memory_order_relaxed);
}

void tm_huge_tick(enum tm_part part)
{
	size_t units = __atomic_load_n(&tm_zone.len, __ATOMIC_RELAXED) >> TM_UNIT_SHIFT;

	if (!tm_huge_is_owed(part))
		return;
	atomic_store_explicit(&guard.owed[part], false, memory_order_relaxed);
	for (size_t at = 0, end; at < units; at = end + 1) {
		for (end = at; end < units && tm_zone.units[end].part == part; end++)
			;
		if (end > at)
			tm_huge_advise((uint32_t)(at * TM_UNIT_PAGES), end - at);
	}
}

void tm_huge_clear(void)
{
	for (int i = 0; i < TM_PART_COUNT; i++)
		atomic_store_explicit(&guard.owed[i], false, memory_order_relaxed);
	atomic_store_explicit(&tm_huge.pool_empty, 0, memory_order_relaxed);
	atomic_store_explicit(&tm_huge.denied, 0, memory_order_relaxed);
	atomic_store_explicit(&tm_huge.advised, 0, memory_order_relaxed);
	atomic_store_explicit(&guard.looked_ms, 0, memory_order_relaxed);
}
