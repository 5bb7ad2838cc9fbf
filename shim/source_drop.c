/* SPDX-License-Identifier: MIT */
#include "shim/source_drop.h"

#include <stdatomic.h>
#include <time.h>

#include "policies/source.h"
#include "shim/base/bits.h"
#include "shim/base/fmt.h"
#include "shim/boot.h"
#include "shim/heap/purge.h"
#include "shim/heap/tier.h"
#include "shim/helper.h"
#include "shim/os/clock.h"
#include "shim/os/maps.h"
#include "shim/os/mem.h"
#include "shim/os/msg.h"
#include "shim/os/sys.h"

#define FILES 64u
#define LOOK_MS 250u
/* After this time without CPU use by the program, waits for its next allocation. */
#define PATIENCE_MS 20000u
#define MOVED_MS 50u
/* Bytes per call, to bound the time for which it blocks other threads' mmap calls. */
#define SLICE_BYTES ((size_t)16 << 20)

struct known {
	uintptr_t start, end;
	uint64_t resident;
	uint64_t whole; /* peak resident bytes */
	struct tm_source_file source;
	uint8_t action; /* of the last look */
	bool seen;      /* by it */
	char path[100]; /* its end, for people */
};

bool tm_source_drop_wanted;

static struct {
	_Atomic bool busy;  /* one at a time has what is below */
	_Atomic bool waits; /* something is to be looked at */
	_Atomic uint64_t looked_ms;
	uint64_t moved_ms; /* when the program's CPU time was last seen to advance */
	uint64_t worked_ms;
	uint32_t count;
	struct known file[FILES];
} sources;

TM_AT_START_CODE void tm_source_drop_init(void)
{
	tm_source_drop_wanted = tm_root.options.source_drop != 0 && !tm_tier_observe;
}

static uint64_t worked_ms(void)
{
	struct timespec t = {0, 0};

	(void)tm_sys_clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static uint64_t allocated(void)
{
	uint64_t bytes = 0;

	for (unsigned i = TM_TIER_ALL + 1; i < TM_TIER_COUNT; i++)
		bytes += atomic_load_explicit(&tm_tiers[i].block_bytes, memory_order_relaxed);
	return bytes;
}

/* --- what is mapped --------------------------------------------------------------------------- */

static struct known *known_of(uintptr_t start, uintptr_t end)
{
	for (uint32_t i = 0; i < sources.count; i++)
		if (sources.file[i].start == start && sources.file[i].end == end)
			return &sources.file[i];
	return NULL;
}

static void see(const struct tm_maps_file *file, void *arg)
{
	struct known *k = known_of(file->start, file->end);

	(void)arg;
	if (k == NULL && sources.count < FILES) {
		k = &sources.file[sources.count++];
		*k = (struct known){.start = file->start, .end = file->end};
		tm_fmt(k->path, sizeof(k->path), "%.*s", (int)file->path.len, file->path.at);
	}
	if (k == NULL)
		return;
	k->seen = true;
	k->resident = file->resident_bytes;
	k->whole = tm_bits_max(k->whole, k->resident);
}

/* Forgets mappings that are gone or have changed: another may have taken their place. */
static uint64_t look(void)
{
	uint64_t bytes = 0;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < sources.count; i++)
		sources.file[i].seen = false;
	if (tm_maps_files(TM_SOURCE_MIN_BYTES, see, NULL) != 0)
		return 0;
	for (uint32_t i = 0; i < sources.count; i++) {
		if (!sources.file[i].seen)
			continue;
		bytes += sources.file[i].whole;
		sources.file[kept++] = sources.file[i];
	}
	sources.count = kept;
	return bytes;
}

/* --- dropping --------------------------------------------------------------------------------- */

/*
 * Uses MADV_PAGEOUT, which never loses data: if the program unmaps the file at this very moment and
 * maps other memory there, that memory is paged out at worst.
 */
static void drop_pieces(const struct known *k, enum tm_source_action action)
{
	size_t length = action == TM_SOURCE_DROP_ALL ? SLICE_BYTES : TM_SOURCE_PIECE_BYTES;
	size_t step = action == TM_SOURCE_DROP_ALL ? SLICE_BYTES : length * TM_SOURCE_SAMPLE_ONE_IN;

	for (uintptr_t at = k->start; at < k->end; at += tm_bits_min(step, k->end - at))
		(void)tm_mem_pageout((void *)at, tm_bits_min(length, k->end - at));
}

static void say_dropped(const struct known *k, enum tm_source_action action)
{
	char size[24];

	tm_fmt_bytes(size, sizeof(size), k->source.dropped);
	if (k->source.dropped == 0)
		tm_msg(TM_MSG_GIVEBACK, "source drop: nothing of '%s' can be dropped", k->path);
	else
		tm_msg(TM_MSG_GIVEBACK, "source drop: %s of '%s'%s", size, k->path,
		       action == TM_SOURCE_DROP_ALL ? "" : ", to see whether it is read again");
}

/* Returns whether something was dropped. */
static bool decide(const struct tm_source_view *look)
{
	bool any = false;

	for (uint32_t i = 0; i < sources.count; i++) {
		struct known *k = &sources.file[i];
		struct tm_source_view view = *look;

		view.resident = k->resident;
		k->action = (uint8_t)TM_SOURCE_NOTHING;
		if (tm_source_is_done(&k->source))
			continue;
		k->action = (uint8_t)tm_source_decide(&k->source, &view);
		if (k->action != TM_SOURCE_NOTHING)
			drop_pieces(k, (enum tm_source_action)k->action);
		else if (k->source.state == TM_SOURCE_READ)
			tm_msg(TM_MSG_GIVEBACK, "source drop: '%s' is read again, it is left alone",
			       k->path);
		any |= k->action != TM_SOURCE_NOTHING;
	}
	return any;
}

static void work(void)
{
	struct tm_source_view view = {.allocated = allocated(), .worked_ms = worked_ms()};
	bool waits = false;

	view.sources = look();
	if (decide(&view)) {
		(void)look();
		for (uint32_t i = 0; i < sources.count; i++) {
			struct known *k = &sources.file[i];

			if (k->action == TM_SOURCE_NOTHING)
				continue;
			tm_source_dropped(&k->source, k->resident);
			say_dropped(k, (enum tm_source_action)k->action);
		}
	}
	for (uint32_t i = 0; i < sources.count; i++)
		waits |= !tm_source_is_done(&sources.file[i].source);
	/* more than this look itself took */
	if (view.worked_ms - sources.worked_ms > MOVED_MS) {
		sources.moved_ms = tm_clock_ms();
		sources.worked_ms = view.worked_ms;
	}
	atomic_store_explicit(&sources.waits, waits, memory_order_relaxed);
}

/* --- when ------------------------------------------------------------------------------------- */

bool tm_source_drop_tick(uint64_t now_ms)
{
	if (!tm_source_drop_wanted || !atomic_load_explicit(&sources.waits, memory_order_relaxed))
		return false;
	if (now_ms - atomic_load_explicit(&sources.looked_ms, memory_order_relaxed) < LOOK_MS ||
	    atomic_exchange_explicit(&sources.busy, true, memory_order_acquire))
		return true;
	atomic_store_explicit(&sources.looked_ms, now_ms, memory_order_relaxed);
	work();
	bool patient = tm_clock_ms() - sources.moved_ms < PATIENCE_MS;
	/* release: who comes next sees what was found */
	atomic_store_explicit(&sources.busy, false, memory_order_release);
	return patient && atomic_load_explicit(&sources.waits, memory_order_relaxed);
}

void tm_source_drop_begin(void)
{
	if (!tm_source_drop_wanted)
		return;
	atomic_store_explicit(&sources.waits, true, memory_order_relaxed);
	tm_helper_kick();
}

void tm_source_drop_pass_slow(void)
{
	uint64_t now = tm_clock_ms();

	if (!atomic_load_explicit(&sources.waits, memory_order_relaxed) ||
	    now - atomic_load_explicit(&sources.looked_ms, memory_order_relaxed) < LOOK_MS * 2)
		return;
	if (tm_purge_mode() == TM_PURGE_BY_CALLERS)
		(void)tm_source_drop_tick(now);
	else
		tm_helper_kick();
}
