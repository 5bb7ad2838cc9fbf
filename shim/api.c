/* SPDX-License-Identifier: MIT */
/*
 * api: the functions of tiermalloc.h, a few lines each over the modules. Any thread.
 *
 * Sessions are numbered and counted here. Tags belong to a part that this build does not have: their
 * functions accept every right call and do nothing.
 */
#include "shim/tiermalloc.h"

#include "shim/alloc.h"

#include <errno.h>
#include <stdatomic.h>

#include "shim/base/attrs.h"
#include "shim/base/parse.h"
#include "shim/base/version.h"
#include "shim/boot.h"
#include "shim/family.h"
#include "shim/heap/account.h"
#include "shim/ledger/epoch.h"
#include "shim/os/maps.h"
#include "shim/report.h"
#include "shim/routing.h"
#include "shim/ruling.h"
#include "shim/trace.h"

static _Atomic uint64_t sessions_begun;
static _Atomic uint64_t sessions_open;

static bool serves(void)
{
	return tm_boot() && tm_root.server == TM_SERVER_ENGINE;
}

TM_EXPORT uint64_t tiermalloc_session_begin(const char *name)
{
	(void)name;
	if (!serves())
		return 0;
	tm_routing_serve();
	tm_epoch_mark(TM_EPOCH_SESSION);
	atomic_fetch_add_explicit(&sessions_open, 1, memory_order_relaxed);
	return atomic_fetch_add_explicit(&sessions_begun, 1, memory_order_relaxed) + 1;
}

TM_EXPORT void tiermalloc_session_end(uint64_t session)
{
	uint64_t open = atomic_load_explicit(&sessions_open, memory_order_relaxed);
	if (session == 0 || session > atomic_load_explicit(&sessions_begun, memory_order_relaxed))
		return;
	tm_epoch_mark(TM_EPOCH_SESSION_ENDED);
	while (open != 0 &&
	       !atomic_compare_exchange_weak_explicit(&sessions_open, &open, open - 1,
						      memory_order_relaxed, memory_order_relaxed))
		;
}

TM_EXPORT void tiermalloc_step(void)
{
	if (serves()) {
		tm_epoch_mark(TM_EPOCH_TOKEN);
		tm_trace_step();
		tm_routing_step();
	}
}

TM_EXPORT void tiermalloc_tag_push(const char *tag)
{
	(void)tag;
}

TM_EXPORT void tiermalloc_tag_pop(void)
{
}

static void *invalid(void)
{
	errno = EINVAL;
	return NULL;
}

TM_EXPORT void *tiermalloc_alloc(size_t size, size_t align, int tier)
{
	if (tier < TIERMALLOC_AUTO || tier > TIERMALLOC_TEMPORARY || (align & (align - 1)) != 0)
		return invalid();
	if (tier == TIERMALLOC_AUTO || !serves())
		return align <= 16 ? tm_root.ops.malloc(size) : tm_root.ops.memalign(align, size);
	if (align < tm_root.options.align_bytes)
		align = tm_root.options.align_bytes;
	return tm_alloc_tier(size, align, (enum tm_tier)tier, TM_SITE_HERE);
}

TM_EXPORT int tiermalloc_set_tier(const char *rule)
{
	if (rule == NULL)
		return -EINVAL;
	return serves() ? tm_ruling_add(rule) : -ENOSYS;
}

TM_EXPORT size_t tiermalloc_trim(int tier)
{
	if (tier < TIERMALLOC_AUTO || tier > TIERMALLOC_TEMPORARY || !serves())
		return 0;
	return tm_alloc_trim_tier((enum tm_tier)tier);
}

static void fill(struct tiermalloc_stats *st, const struct tm_snapshot *s)
{
	struct tm_maps_resident resident = {0, 0};
	tm_maps_resident(s->zone_start, s->zone_end, &resident);
	for (int i = TIERMALLOC_AUTO; i <= TIERMALLOC_TEMPORARY; i++) {
		st->live_bytes[i] = s->tier[i].live_bytes;
		st->slot_bytes[i] = s->tier[i].slot_bytes;
		st->cached_bytes[i] = s->tier[i].cached_bytes;
	}
	st->resident_bytes = resident.resident_bytes;
	st->peak_bytes = s->peak_live_bytes;
	st->sessions = atomic_load_explicit(&sessions_open, memory_order_relaxed);
}

TM_EXPORT int tiermalloc_stats(struct tiermalloc_stats *stats)
{
	struct tiermalloc_stats full = {0};
	struct tm_snapshot s = {0};
	uint64_t bytes;
	int rc;
	if (stats == NULL || stats->struct_bytes < sizeof(stats->struct_bytes))
		return -EINVAL;
	if (!serves())
		return -ENOSYS;
	rc = tm_report_snapshot(&s);
	if (rc != 0)
		return rc;
	bytes = stats->struct_bytes < sizeof(full) ? stats->struct_bytes : sizeof(full);
	full.struct_bytes = bytes;
	fill(&full, &s);
	__builtin_memcpy(stats, &full, bytes);
	return 0;
}

TM_EXPORT int tiermalloc_report(int fd, const char *kind)
{
	struct tm_str k = tm_str_of(kind);
	if (!tm_boot())
		return -EAGAIN;
	if (tm_str_is(k, "exit"))
		return tm_report_write(fd);
	return tm_str_is(k, "leak") || tm_str_is(k, "frag") || tm_str_is(k, "full") ? -ENOSYS
										    : -EINVAL;
}

TM_EXPORT const char *tiermalloc_version(void)
{
	return tm_version_string();
}
