/* SPDX-License-Identifier: MIT */
#include "shim/ledger/samples.h"

#include <sys/resource.h>

#include "shim/base/bits.h"
#include "shim/base/parse.h"
#include "shim/heap/account.h"
#include "shim/heap/extent.h"
#include "shim/heap/heap.h"
#include "shim/heap/meta.h"
#include "shim/heap/tier.h"
#include "shim/helper.h"
#include "shim/ledger/census.h"
#include "shim/ledger/decisions.h"
#include "shim/ledger/epoch.h"
#include "shim/ledger/ledger.h"
#include "shim/ledger/sheet.h"
#include "shim/module.h"
#include "shim/os/clock.h"
#include "shim/os/lock.h"
#include "shim/os/proc.h"
#include "shim/os/sys.h"
#include "shim/pooling.h"
#include "shim/scan/scan.h"

#define SAMPLE_MS 1000u
/* A census takes at most this share of the time. */
#define COUNT_SHARE 100u
/* A busy thread reads the clock once in this many passes. */
#define PASSES_MAX 64u
/* Shortest useful interval between two reads of the clock. */
#define LOOK_MS 100u
/* After this many passes, or one for this many bytes, a helper stays to answer the command. */
#define STAY_PASSES 32u
#define STAY_BYTES ((uint64_t)4 << 20)
/* Or with this RSS: it may have an allocator of its own, such as an interpreter. */
#define STAY_RSS_BYTES ((uint64_t)16 << 20)
#define USUAL_WINDOW_MS 60000u
#define SHEET_MS 5000u
/* If memory grows by 1/8 and by this much, samples come sooner: the process may be about to end. */
#define GROWN_SHARE 8u
#define GROWN_BYTES ((uint64_t)4 << 20)
#define STEP_MIN_MS 20u
#define LAST_PAUSES 200u /* of a millisecond */
#define PEAK_SHARE 32u   /* RSS within so much of the peak counts as the peak */

static struct tm_lock lock = TM_LOCK_INIT(TM_RANK_TICK);

static struct {
	uint64_t next_ms;     /* [atomic] time of the next regular work */
	uint64_t soon_ms;     /* [atomic] earliest time of the next work if memory grows fast */
	uint64_t used_bytes;  /* [atomic] at the last sample */
	bool counting;        /* [atomic] a census is under way */
	uint32_t asked;       /* [lock] request of the command that waits for the census; 0: none */
	uint64_t count_ns;    /* [lock] duration of the last census, or of the current one so far */
	uint64_t limit_bytes; /* [lock] of the control group */
	bool limit_known;
	bool is_large; /* [atomic] RSS has once exceeded the limit above */
} due = {.next_ms = 0};

static TM_TLS struct {
	uint8_t left, step;
	uint8_t count; /* up to STAY_PASSES */
	uint32_t looked_ms;
} pass;

/* --- figures ---------------------------------------------------------------------------------- */

/* By tier; 0: all. */
static void read_cached(uint64_t *cached, uint64_t *mapped)
{
	for (unsigned tier = 0; tier < TM_LEDGER_TIERS; tier++)
		cached[tier] = mapped[tier] = 0;
	for (unsigned part = 0; part < TM_PART_COUNT; part++) {
		unsigned tier = (unsigned)tm_tier_of_part((enum tm_part)part);
		struct tm_part_stats stats;

		size_t idle = tm_pool_idle_bytes((enum tm_part)part);

		tm_extent_stats((enum tm_part)part, &stats);
		for (unsigned t = 0;; t = tier) {
			cached[t] += stats.retained_bytes + stats.sparse_bytes + idle;
			mapped[t] += stats.mapped_bytes;
			if (t == tier)
				break;
		}
	}
}

/*
 * Live bytes at peak RSS. Freed memory stays resident for a while, so among moments with about the
 * same RSS the one with the most live bytes counts. [lock]
 */
static void note_peak(struct tm_ledger_counters *c, uint64_t now_ms, uint64_t rss)
{
	uint64_t live = tm_census_totals()->live_bytes[0], about = c->at_peak_rss / PEAK_SHARE;

	if (rss > c->at_peak_rss + about ||
	    (rss + about >= c->at_peak_rss && live > c->at_peak_live)) {
		c->at_peak_live = live;
		c->at_peak_ms = now_ms;
		c->at_peak_rss = tm_bits_max(rss, c->at_peak_rss);
	}
}

/* [lock] */
static void write_counters(uint64_t now_ms, const struct tm_proc_memory *memory,
			   const uint64_t *cached, const uint64_t *mapped)
{
	struct tm_ledger_counters *c = tm_ledger_area(TM_LEDGER_COUNTERS_AT, sizeof(*c));
	const struct tm_census_totals *t = tm_census_totals();
	size_t meta_mapped, meta_used;
	struct rusage usage = {0};

	if (c == NULL)
		return;
	if (!due.limit_known) {
		due.limit_known = true;
		due.limit_bytes = tm_proc_cgroup_limit();
	}
	if (tm_proc_may_open())
		(void)tm_syscall6(SYS_getrusage, RUSAGE_SELF, (long)(uintptr_t)&usage, 0, 0, 0, 0);
	tm_meta_stats(&meta_mapped, &meta_used);
	__atomic_store_n(&c->seq, c->seq | 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	c->at_ms = now_ms;
	c->rss_bytes = memory->rss_bytes;
	c->file_rss_bytes = memory->shared_bytes;
	c->peak_rss_bytes = (uint64_t)usage.ru_maxrss << 10;
	c->limit_bytes = due.limit_bytes == UINT64_MAX ? 0 : due.limit_bytes;
	for (unsigned tier = 0; tier < TM_LEDGER_TIERS; tier++) {
		uint64_t *word = c->tier[tier];

		word[TM_LEDGER_TIER_live_bytes] = t->live_bytes[tier];
		word[TM_LEDGER_TIER_live_objects] = t->objects[tier];
		word[TM_LEDGER_TIER_slot_bytes] = t->slot_bytes[tier];
		word[TM_LEDGER_TIER_cached_bytes] = cached[tier];
		word[TM_LEDGER_TIER_mapped_bytes] = mapped[tier];
		word[TM_LEDGER_TIER_refused] = tm_tier_refused((enum tm_tier)tier);
		if (tier == 0) {
			word[TM_LEDGER_TIER_resident_bytes] = tm_sheet_resident_bytes();
			word[TM_LEDGER_TIER_huge_bytes] = tm_sheet_huge_bytes();
		}
		if (word[TM_LEDGER_TIER_peak_live_bytes] < t->live_bytes[tier])
			word[TM_LEDGER_TIER_peak_live_bytes] = t->live_bytes[tier];
	}
	c->process[TM_LEDGER_PROCESS_meta_bytes] = meta_mapped + tm_account_side_mapped();
	c->process[TM_LEDGER_PROCESS_heaps] = tm_heap_count();
	note_peak(c, now_ms, memory->rss_bytes);
	__atomic_store_n(&c->seq, (c->seq | 1) + 1, __ATOMIC_RELEASE);
}

/* --- rings ------------------------------------------------------------------------------------ */

static const struct {
	uint32_t first, length, step_ms;
} ring[3] = {
	{0, TM_LEDGER_RING_S, 1000},
	{TM_LEDGER_RING_S, TM_LEDGER_RING_MIN, 60000},
	{TM_LEDGER_RING_S + TM_LEDGER_RING_MIN, TM_LEDGER_RING_H, 3600000},
};

static struct tm_ledger_sample *sample_at(unsigned which, uint64_t n)
{
	uint64_t index = ring[which].first + n % ring[which].length;

	return tm_ledger_area(TM_LEDGER_SAMPLES_AT + index * sizeof(struct tm_ledger_sample),
			      sizeof(struct tm_ledger_sample));
}

/* Intervals scale with the length of the leak tests' window, if that is short. */
static uint64_t scaled(uint64_t ms)
{
	uint64_t window_ms = tm_ledger_header()->window_ms;

	if (window_ms >= USUAL_WINDOW_MS)
		return ms;
	ms = ms * window_ms / USUAL_WINDOW_MS;
	return ms < STEP_MIN_MS ? STEP_MIN_MS : ms;
}

/* [lock] */
static void add_sample(unsigned which, const struct tm_ledger_sample *new)
{
	struct tm_ledger_header *header = tm_ledger_header();
	uint64_t n = header->samples[which];
	struct tm_ledger_sample *s;

	if (n != 0 && (s = sample_at(which, n - 1)) != NULL &&
	    new->at_ms - s->at_ms < scaled(ring[which].step_ms))
		return;
	s = sample_at(which, n);
	if (s == NULL)
		return;
	__atomic_store_n(&s->at_ms, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__builtin_memcpy((char *)s + 8, (const char *)new + 8, sizeof(*s) - 8);
	__atomic_store_n(&s->at_ms, new->at_ms, __ATOMIC_RELEASE);
	__atomic_store_n(&header->samples[which], n + 1, __ATOMIC_RELEASE);
}

/* [lock] Device bytes, as of the last time that they were available. */
static uint64_t device_bytes(void)
{
	static uint64_t last;
	uint64_t now = tm_module_cuda() == NULL ? 0 : tm_module_cuda()->sample();

	if (now != UINT64_MAX)
		last = now;
	return last;
}

/* [lock] Writes the results of the census. */
static uint64_t sample(uint64_t now_ms)
{
	struct tm_proc_memory memory = tm_proc_memory();
	struct tm_ledger_sample s = {.at_ms = now_ms, .rss_bytes = memory.rss_bytes};
	const struct tm_census_totals *t = tm_census_totals();
	uint64_t mapped[TM_LEDGER_TIERS];

	__builtin_memcpy(s.live_bytes, t->live_bytes, sizeof(s.live_bytes));
	__builtin_memcpy(s.slot_bytes, t->slot_bytes, sizeof(s.slot_bytes));
	read_cached(s.cached_bytes, mapped);
	s.gpu_bytes = device_bytes();
	s.objects = t->births;
	s.sessions = tm_epoch_marked(TM_EPOCH_SESSION);
	s.tokens = tm_epoch_marked(TM_EPOCH_TOKEN);
	for (unsigned which = 0; which < 3; which++)
		add_sample(which, &s);
	struct tm_ledger_header *header = tm_ledger_header();
	header->sessions = s.sessions;
	header->sessions_ended = tm_epoch_marked(TM_EPOCH_SESSION_ENDED);
	header->tokens = s.tokens;
	write_counters(now_ms, &memory, s.cached_bytes, mapped);
	tm_pooling_write();
	if (memory.rss_bytes >= STAY_RSS_BYTES)
		__atomic_store_n(&due.is_large, true, __ATOMIC_RELAXED);
	return memory.rss_bytes;
}

/* --- counting --------------------------------------------------------------------------------- */

/* [lock] Begins a census; if there is no memory for sites, of totals only. */
static void begin_count(enum tm_census_kind kind)
{
	due.count_ns = 0;
	if (tm_census_begin(kind) != 0)
		(void)tm_census_begin(TM_CENSUS_TOTALS);
	__atomic_store_n(&due.counting, true, __ATOMIC_RELAXED);
}

/* [lock] True: the census has ended. */
static bool count(uint64_t steps)
{
	uint64_t before = tm_clock_ns();
	bool ended = tm_census_go_on(steps);

	due.count_ns += tm_clock_ns() - before;
	return ended;
}

static void end_count(void)
{
	tm_census_end();
	__atomic_store_n(&due.counting, false, __ATOMIC_RELAXED);
}

/* --- when ------------------------------------------------------------------------------------- */

static void say_done(struct tm_ledger_header *header, uint32_t seq, int error)
{
	header->control_error = error;
	__atomic_store_n(&header->control_done, seq, __ATOMIC_RELEASE);
	tm_sys_futex((_Atomic uint32_t *)&header->control_done, 1 /* FUTEX_WAKE */, INT32_MAX,
		     NULL);
}

/* Handles a request of the command. [lock] */
static void answer(struct tm_ledger_header *header)
{
	uint32_t seq = __atomic_load_n(&header->control_seq, __ATOMIC_ACQUIRE);
	int rc;

	/* a leak scan is answered by its image */
	if (seq == header->control_done || seq == due.asked || tm_scan_is_busy())
		return;
	switch (header->control) {
	case TM_LEDGER_SCAN_SNAPSHOT:
	case TM_LEDGER_SCAN_STOP:
		rc = tm_scan_begin((enum tm_ledger_control)header->control, seq);
		if (rc != 0)
			say_done(header, seq, rc);
		break;
	default: due.asked = seq; begin_count(TM_CENSUS_SITES);
	}
}

static bool has_grown(uint64_t now_ms)
{
	uint64_t before = __atomic_load_n(&due.used_bytes, __ATOMIC_RELAXED);

	return now_ms >= __atomic_load_n(&due.soon_ms, __ATOMIC_RELAXED) &&
	       tm_extent_used_bytes() > before + before / GROWN_SHARE + GROWN_BYTES;
}

/* [lock] The census has ended. */
static void write_all(struct tm_ledger_header *header, uint64_t now_ms)
{
	uint64_t rss = sample(now_ms);
	uint64_t pause = due.count_ns * COUNT_SHARE / 1000000;

	tm_sheet_tick(now_ms, rss, due.asked != 0 ? 0 : scaled(SHEET_MS));
	if (tm_census_now() == TM_CENSUS_SITES && tm_epoch_is_over(now_ms))
		tm_epoch_end(now_ms, rss, due.count_ns);
	end_count();
	tm_decisions_tick();
	__atomic_store_n(&due.used_bytes, tm_extent_used_bytes(), __ATOMIC_RELAXED);
	__atomic_store_n(&due.soon_ms, now_ms + tm_bits_max(pause, STEP_MIN_MS), __ATOMIC_RELAXED);
	__atomic_store_n(&due.next_ms, now_ms + tm_bits_max(pause, scaled(SAMPLE_MS)),
			 __ATOMIC_RELAXED);
	if (due.asked != 0)
		say_done(header, due.asked, 0);
	due.asked = 0;
}

static void tick(uint64_t now_ms, uint64_t steps)
{
	struct tm_ledger_header *header = tm_ledger_header();

	if (header == NULL)
		return;
	if (now_ms - header->heartbeat_ms >= LOOK_MS)
		__atomic_store_n(&header->heartbeat_ms, now_ms, __ATOMIC_RELAXED);
	if (now_ms < __atomic_load_n(&due.next_ms, __ATOMIC_RELAXED) && !has_grown(now_ms) &&
	    !__atomic_load_n(&due.counting, __ATOMIC_RELAXED) &&
	    __atomic_load_n(&header->control_seq, __ATOMIC_RELAXED) == header->control_done)
		return;
	if (!tm_lock_try(&lock))
		return;
	answer(header);
	if (!due.counting && (now_ms >= due.next_ms || has_grown(now_ms)))
		begin_count(tm_epoch_is_over(now_ms) ? TM_CENSUS_SITES : TM_CENSUS_TOTALS);
	if (due.counting && count(steps))
		write_all(header, now_ms);
	tm_lock_release(&lock);
}

void tm_samples_tick(uint64_t now_ms)
{
	tick(now_ms, TM_CENSUS_WHOLE);
}

void tm_samples_pass(size_t bytes)
{
	uint64_t now;

	bool often = pass.count < STAY_PASSES && ++pass.count == STAY_PASSES;
	/* a program may allocate a large block and then only fill it: no later pass would come */
	if ((often || bytes >= STAY_BYTES) && tm_ledger_is_asked_for())
		tm_helper_stay();
	if (pass.left != 0) {
		pass.left--;
		return;
	}
	now = tm_clock_ms();
	/* adapts the number of passes per clock read to the rate of passes */
	if ((uint32_t)now - pass.looked_ms >= STEP_MIN_MS)
		pass.step = 0;
	else
		pass.step = (uint8_t)(pass.step >= PASSES_MAX ? PASSES_MAX : pass.step * 2u + 1u);
	pass.left = pass.step;
	pass.looked_ms = (uint32_t)now;
	tick(now, TM_CENSUS_SLICE);
	if (__atomic_load_n(&due.is_large, __ATOMIC_RELAXED) && tm_ledger_is_asked_for())
		tm_helper_stay();
}

/*
 * At process end the helper may just be counting. Not without an end: this thread itself may hold the
 * lock, as exit was called in a signal handler.
 */
static bool lock_soon(void)
{
	static const struct timespec pause = {0, 1000000};

	for (unsigned n = 0; n < LAST_PAUSES; n++) {
		if (tm_lock_try_steal(&lock))
			return true;
		if (tm_lock_is_mine(&lock))
			return false;
		(void)tm_sys_nanosleep(&pause);
	}
	return false;
}

void tm_samples_now(void)
{
	if (tm_ledger_header() == NULL || !lock_soon())
		return;
	uint64_t now_ms = tm_clock_ms();
	__atomic_store_n(&tm_ledger_header()->heartbeat_ms, now_ms, __ATOMIC_RELAXED);
	if (tm_ledger_is_asked_for())
		tm_sheet_write(now_ms);
	begin_count(tm_ledger_is_asked_for() ? TM_CENSUS_SITES : TM_CENSUS_TOTALS);
	(void)count(TM_CENSUS_WHOLE);
	(void)sample(now_ms);
	end_count();
	tm_decisions_write();
	tm_lock_release(&lock);
}

void tm_samples_refused(void)
{
	struct tm_ledger_counters *c = tm_ledger_area(TM_LEDGER_COUNTERS_AT, sizeof(*c));

	for (unsigned tier = 0; c != NULL && tier < TM_LEDGER_TIERS; tier++)
		__atomic_store_n(&c->tier[tier][TM_LEDGER_TIER_refused],
				 tm_tier_refused((enum tm_tier)tier), __ATOMIC_RELAXED);
}

void tm_samples_event(enum tm_ledger_event_kind kind, unsigned tier, uint64_t a, uint64_t b)
{
	static uint64_t last[16]; /* [atomic] by kind: number + 1 of its last event */
	struct tm_ledger_header *header = tm_ledger_header();
	uint64_t now = tm_clock_ms(), n;
	struct tm_ledger_event *e;

	if (header == NULL)
		return;
	if (kind == TM_LEDGER_TIER_CEILING || kind == TM_LEDGER_OUT_OF_MEMORY)
		tm_samples_refused();
	n = __atomic_load_n(&last[kind % 16], __ATOMIC_RELAXED);
	e = n == 0 ? NULL
		   : tm_ledger_area(TM_LEDGER_EVENTS_AT + (n - 1) % TM_LEDGER_EVENTS * sizeof(*e),
				    sizeof(*e));
	if (e != NULL && e->seq == n && e->tier == tier && now - e->at_ms < 1000) {
		__atomic_fetch_add(&e->count, 1, __ATOMIC_RELAXED);
		return;
	}
	n = __atomic_fetch_add(&header->events, 1, __ATOMIC_RELAXED);
	e = tm_ledger_area(TM_LEDGER_EVENTS_AT + n % TM_LEDGER_EVENTS * sizeof(*e), sizeof(*e));
	if (e == NULL)
		return;
	__atomic_store_n(&e->seq, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	e->at_ms = now;
	e->kind = (uint16_t)kind;
	e->tier = (uint16_t)tier;
	e->count = 1;
	e->a = a;
	e->b = b;
	__atomic_store_n(&e->seq, n + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&last[kind % 16], n + 1, __ATOMIC_RELAXED);
}

TM_AT_START_CODE void tm_samples_init(void)
{
	tm_lock_register(&lock);
}
