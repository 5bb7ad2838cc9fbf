/* SPDX-License-Identifier: MIT */
/*
 * steal: takes hold of heaps whose threads sleep, and trims them.
 *
 * The owner's fast path takes no lock, so a running thread's heap can't be taken. But a thread that
 * is asleep in a system call is not inside an allocation function. So: read how often the thread
 * has been scheduled and that it is in a system call; set TM_HEAP_STOLEN in its TLS word by a
 * locked compare-and-swap; read again. If the thread was not scheduled in between, it has executed
 * nothing since before the swap; its next allocation will see the bit and wait. Where /proc can't
 * be read, heaps of living threads are left alone, and their owners trim.
 */
#include <linux/futex.h>

#include "shim/base/bits.h"
#include "shim/base/fmt.h"
#include "shim/heap/annex.h"
#include "shim/heap/extent.h"
#include "shim/heap/limit.h"
#include "shim/heap/look.h"
#include "shim/heap/purge.h"
#include "shim/heap/remote.h"
#include "shim/heap/stray.h"
#include "shim/heap/trim.h"
#include "shim/os/clock.h"
#include "shim/os/lock.h"
#include "shim/os/proc.h"
#include "shim/os/sys.h"

/* Heaps smaller than this are not worth reading /proc for. */
#define STEAL_WORTH_SPANS 8u

/* Heaps are examined this often; an owner whose lists did not change since is idle. */
#define TRIM_PERIOD_MS 250u

/*
 * Reading /proc for each sleeping thread is worth it once memory has grown by an eighth, between:
 */
#define SLEEPERS_GROWTH_SHARE 8u
#define SLEEPERS_GROWTH_MIN_BYTES ((size_t)8 << 20)
#define SLEEPERS_GROWTH_MAX_BYTES ((size_t)32 << 20)
#define BLOCKS_GROWTH_BYTES ((size_t)8 << 20)

/*
 * The helper stays while a running thread has a heap of this size, to trim it when the thread
 * pauses.
 */
#define PENDING_SPANS 128u

struct tm_trim_sum {
	size_t released_bytes;
	size_t pending_bytes;
};

enum sleep { SLEEP_UNKNOWN, SLEEP_RUNS, SLEEP_ASLEEP };

/*
 * Whether the thread is asleep in a system call (not in a page fault), and how often it was
 * scheduled.
 */
static enum sleep look(int tid, uint64_t *ret_slices)
{
	char path[64], buf[128];
	const char *p = buf;

	*ret_slices = 0;
	tm_fmt(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	if (tm_proc_read(path, buf, sizeof(buf)) <= 0)
		return SLEEP_UNKNOWN;
	if (buf[0] < '0' || buf[0] > '9')
		return SLEEP_RUNS; /* "running", or "-1" */
	tm_fmt(path, sizeof(path), "/proc/self/task/%d/schedstat", tid);
	if (tm_proc_read(path, buf, sizeof(buf)) <= 0)
		return SLEEP_UNKNOWN;
	for (int field = 0; field < 2; field++) {
		while (*p != '\0' && *p != ' ')
			p++;
		while (*p == ' ')
			p++;
	}
	for (; *p >= '0' && *p <= '9'; p++)
		*ret_slices = *ret_slices * 10 + (uint64_t)(*p - '0');
	return *ret_slices == 0 ? SLEEP_UNKNOWN : SLEEP_ASLEEP;
}

/*
 * A hash of the heap's lists. Unchanged since the last look it means that the owner allocates
 * nothing, or at most the same objects again and again. A thread that wakes for other work counts
 * as idle.
 */
static uint64_t signature(const struct tm_heap *h)
{
	uint64_t sum = tm_heap_size(h) + 2;

	for (unsigned klass = 1; klass < TM_LISTS; klass++)
		sum = (sum ^ (uintptr_t)h->list[klass] ^ (uintptr_t)h->arena[klass] / 3) *
		      UINT64_C(0x9e3779b97f4a7c15);
	return sum | 2; /* neither 0 nor 1, which mean something else */
}

/* Value of h->stolen: the heap is stolen, by a helper of this process. */
static uint32_t stolen_here(void)
{
	return tm_fork_generation() + 1;
}

static void wake_owner(struct tm_heap *h)
{
	atomic_store_explicit(&h->stolen, 0, memory_order_release);
	tm_sys_futex(&h->stolen, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL);
}

/* Return a stolen heap. The owner's busy bit is left unchanged. */
static void return_heap(struct tm_heap *h)
{
	uintptr_t word = __atomic_load_n(h->tls_word, __ATOMIC_RELAXED), own;

	do {
		if ((word & TM_HEAP_STOLEN_BIT) == 0)
			break;
		own = (word & TM_HEAP_BUSY_BIT) != 0 ? TM_HEAP_BUSY : 0;
	} while (!__atomic_compare_exchange_n(h->tls_word, &word, (uintptr_t)h | own, false,
					      __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
	wake_owner(h);
}

static bool steal(struct tm_heap *h, uint64_t slices_before)
{
	uintptr_t word = (uintptr_t)h;
	uint64_t slices;

	atomic_store_explicit(&h->stolen, stolen_here(), memory_order_seq_cst);
	if (!__atomic_compare_exchange_n(h->tls_word, &word, word | TM_HEAP_STOLEN, false,
					 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
		wake_owner(h);
		return false;
	}
	if (look(h->tid, &slices) == SLEEP_ASLEEP && slices == slices_before)
		return true;
	/*
	 * It woke. If it began an allocation just before the swap it is inside the heap, else it
	 * waits.
	 */
	return_heap(h);
	return false;
}

bool tm_trim_wait(struct tm_heap *h)
{
	const struct timespec limit = {.tv_nsec = 10000000};
	uint32_t by;

	while ((by = atomic_load_explicit(&h->stolen, memory_order_acquire)) != 0) {
		if (by != stolen_here())
			return false;
		tm_sys_futex(&h->stolen, FUTEX_WAIT_PRIVATE, by, &limit);
	}
	return true;
}

/*
 * Slots are parked in two steps, and stealing a heap changes its owner's word: a fork in between
 * would leave the child with slots on two lists, or with a heap that nobody returns.
 */
static struct tm_lock trim_lock = TM_LOCK_INIT(TM_RANK_TRIM);

TM_AT_START_CODE void tm_trim_init(void)
{
	tm_lock_register(&trim_lock);
}

void tm_trim_lock(void)
{
	tm_lock_acquire(&trim_lock);
}

void tm_trim_unlock(void)
{
	tm_lock_release(&trim_lock);
}

/*
 * [heaps lock] A slot whose span has moved to another heap is passed on to that heap, which may
 * come earlier in the list: so all are drained before the first is trimmed.
 */
static void drain_orphans(void)
{
	for (struct tm_heap *h = tm_heap_orphan_first(); h != NULL; h = h->next_orphan)
		tm_stray_settle_all(h);
	for (struct tm_heap *h = tm_heap_orphan_first(); h != NULL; h = h->next_orphan)
		if (tm_remote_waits(h)) {
			tm_remote_drain(h);
			h->trimmed_mark = 0;
		}
}

size_t tm_trim_orphans(void)
{
	size_t bytes = 0;

	tm_heap_lock_long();
	drain_orphans();
	for (struct tm_heap *h = tm_heap_orphan_first(); h != NULL; h = h->next_orphan) {
		if (h->trimmed_mark == 1 && !tm_remote_waits(h))
			continue;
		bytes += tm_trim_heap(h);
		h->trimmed_mark = 1;
	}
	tm_heap_unlock_long();
	return bytes;
}

/*
 * [heaps lock] True for a heap that can be stolen: owned, and its word not busy. The caller's own
 * heap is busy.
 */
static bool is_owned_and_free(const struct tm_heap *h)
{
	return atomic_load_explicit(&h->state, memory_order_acquire) == TM_HEAP_OWNED &&
	       h->tid != 0 && (__atomic_load_n(h->tls_word, __ATOMIC_RELAXED) & TM_HEAP_BITS) == 0;
}

/* Steal the heap if its thread sleeps. True: it is the caller's until let_sleeper_go. */
static bool hold_sleeper(struct tm_heap *h)
{
	uint64_t slices;

	/* under the lock its thread can't end, so its TLS word stays valid */
	tm_heap_lock();
	if (is_owned_and_free(h) && look(h->tid, &slices) == SLEEP_ASLEEP && steal(h, slices))
		return true;
	tm_heap_unlock();
	return false;
}

static void let_sleeper_go(struct tm_heap *h)
{
	return_heap(h);
	tm_heap_unlock();
}

static bool is_worth_stealing(const struct tm_heap *h)
{
	return h->tid != 0 && tm_heap_size(h) >= STEAL_WORTH_SPANS;
}

/* Steal and trim at the first look, since memory is short now. */
static void take_from_sleeper(struct tm_heap *h, void *arg)
{
	size_t *bytes = arg;

	if (!is_worth_stealing(h) || !hold_sleeper(h))
		return;
	*bytes += tm_trim_heap(h);
	let_sleeper_go(h);
}

/* --- before growth, in bounded steps ---------------------------------------------------------- */

/*
 * What one call does in other heaps: trims small ones of this much work in all, or else one
 * step of a look at one large heap; and reads /proc for so many threads.
 */
#define OTHERS_WORK 8192u
#define OTHERS_THREADS 4u

/* Work of a trim: 1 for a slot, more for a granule, of which pages may go back to the kernel. */
#define GRANULE_WORK 256u

/* A growing heap spends at most a twentieth of its time on looks. */
#define GROWTH_SHARE 20u

/* Two looks after frees are at least 100 ms apart, and 50 times the duration of the last one. */
#define FREES_PAUSE_MS 100u
#define FREES_SHARE 50u

/* `trimmed_mark` of an orphan of which a look, but no trim, was made. */
#define MARK_LOOKED 2u

static struct {
	_Atomic bool orphans; /* work was left */
	_Atomic bool sleepers;
	struct tm_heap *next; /* [trim lock] the next sleeper */
	uint32_t heaps;       /* [trim lock] to be examined from there on */
} left;

/* Work of trimming the heap; any more than `most` counts as UINT32_MAX. The caller holds it. */
static uint32_t work_of(const struct tm_heap *h, uint32_t most)
{
	uint64_t work = (uint64_t)tm_heap_size(h) * GRANULE_WORK;

	for (const struct tm_granule *g = tm_granule_at(h->span_first); g != NULL && work <= most;
	     g = tm_granule_at(g->next))
		work += g->carved;
	return work <= most ? (uint32_t)work : UINT32_MAX;
}

enum trimmed {
	TRIM_GOES_ON, /* the budget is used up, or a look goes on */
	TRIM_LOOKED,  /* a look has ended */
	TRIM_WHOLE,
};

/* Trim a small heap, or make a step of a look. */
static enum trimmed trim_some(struct tm_heap *h, uint32_t *work, size_t *bytes)
{
	uint32_t whole = tm_look_is_on(h) ? UINT32_MAX : work_of(h, *work);

	if (whole <= *work) {
		*work -= whole;
		*bytes += tm_trim_heap(h);
		return TRIM_WHOLE;
	}
	if (*work < OTHERS_WORK)
		return TRIM_GOES_ON;
	*work = 0;
	tm_look_begin(h);
	*bytes += tm_look_step(h);
	return tm_look_is_on(h) ? TRIM_GOES_ON : TRIM_LOOKED;
}

/* [heaps lock] As drain_orphans, but what a request may link. False: slots may still wait. */
static bool drain_some_of_orphans(void)
{
	size_t linked = 0;

	for (struct tm_heap *h = tm_heap_orphan_first(); h != NULL && linked < TM_DRAIN_SLOTS;
	     h = h->next_orphan)
		if (tm_remote_waits(h)) {
			linked += tm_remote_drain_some(h);
			h->trimmed_mark = 0;
		}
	return linked < TM_DRAIN_SLOTS;
}

static size_t trim_some_orphans(uint32_t *work)
{
	size_t bytes = 0;
	bool done;

	tm_heap_lock();
	done = drain_some_of_orphans();
	for (struct tm_heap *h = tm_heap_orphan_first(); h != NULL && done; h = h->next_orphan) {
		enum trimmed how;

		if (!tm_look_is_on(h) && (h->trimmed_mark == 1 || h->trimmed_mark == MARK_LOOKED))
			continue;
		how = trim_some(h, work, &bytes);
		done = how != TRIM_GOES_ON;
		if (done)
			h->trimmed_mark = how == TRIM_WHOLE ? 1 : MARK_LOOKED;
	}
	atomic_store_explicit(&left.orphans, !done, memory_order_relaxed);
	tm_heap_unlock();
	return bytes;
}

/* False: call again for the same heap. */
static bool trim_some_of_sleeper(struct tm_heap *h, uint32_t *work, size_t *bytes)
{
	bool done;

	if (!hold_sleeper(h))
		return true;
	done = trim_some(h, work, bytes) != TRIM_GOES_ON;
	let_sleeper_go(h);
	return done;
}

static size_t trim_some_sleepers(uint32_t *work)
{
	size_t bytes = 0;

	for (unsigned threads = 0; left.heaps != 0 && *work != 0 && threads < OTHERS_THREADS;) {
		struct tm_heap *h = left.next != NULL ? left.next : tm_heap_first();

		if (is_worth_stealing(h)) {
			threads++;
			if (!trim_some_of_sleeper(h, work, &bytes))
				break;
		}
		left.next = h->next;
		left.heaps--;
	}
	atomic_store_explicit(&left.sleepers, left.heaps != 0, memory_order_relaxed);
	return bytes;
}

/* Whether memory has grown enough for a visit to the heaps of sleeping threads. */
static bool sleepers_are_due(void)
{
	/* fresh bytes when they were last examined */
	static _Atomic size_t fresh_then;
	size_t fresh = 0, growth;

	for (int i = 0; i < TM_PART_COUNT; i++)
		fresh += tm_extent_fresh_bytes((enum tm_part)i);
	growth = tm_bits_clamp(tm_extent_used_bytes() / SLEEPERS_GROWTH_SHARE,
			       SLEEPERS_GROWTH_MIN_BYTES, SLEEPERS_GROWTH_MAX_BYTES);
	if (fresh - atomic_load_explicit(&fresh_then, memory_order_relaxed) <= growth ||
	    !tm_limit_may_look())
		return false;
	atomic_store_explicit(&fresh_then, fresh, memory_order_relaxed);
	return true;
}

bool tm_trim_goes_on(const struct tm_heap *h)
{
	return tm_look_is_on(h) || atomic_load_explicit(&left.orphans, memory_order_relaxed) ||
	       atomic_load_explicit(&left.sleepers, memory_order_relaxed);
}

size_t tm_trim_before_growth(struct tm_heap *h)
{
	uint64_t before = tm_clock_ns(), after;
	uint32_t work = OTHERS_WORK;
	size_t bytes = 0;

	if (!tm_trim_goes_on(h))
		tm_look_begin(h);
	bytes += tm_look_step(h);
	/* another thread is at it, maybe for long */
	if (tm_lock_try_steal(&trim_lock)) {
		bytes += trim_some_orphans(&work);
		if (left.heaps == 0 && sleepers_are_due())
			left.heaps = tm_heap_count();
		if (left.heaps != 0)
			bytes += trim_some_sleepers(&work);
		tm_trim_unlock();
	}
	after = tm_clock_ns();
	h->look_ns += after - before;
	h->next_growth_ns = after + h->look_ns * GROWTH_SHARE;
	return bytes;
}

void tm_trim_after_frees(struct tm_heap *h)
{
	uint64_t before = tm_clock_ns(), after;

	tm_look_begin(h);
	(void)tm_look_step(h);
	after = tm_clock_ns();
	h->look_ns += after - before;
	h->next_look_ms = after / 1000000 + FREES_PAUSE_MS + h->look_ns / 1000000 * FREES_SHARE;
}

void tm_trim_before_block(struct tm_heap *h, enum tm_part part, size_t bytes)
{
	static _Atomic size_t fresh_then;
	size_t more = tm_extent_lacks(part, bytes) ? bytes : 0;
	size_t fresh = 0;

	for (int i = 0; i < TM_PART_COUNT; i++)
		if (i != TM_PART_SPAN)
			fresh += tm_extent_fresh_bytes((enum tm_part)i);
	if (fresh + more - atomic_load_explicit(&fresh_then, memory_order_relaxed) <
	    BLOCKS_GROWTH_BYTES)
		return;
	atomic_store_explicit(&fresh_then, fresh, memory_order_relaxed);
	/*
	 * even if this heap is small: idle memory may lie in heaps of threads that are gone or
	 * asleep
	 */
	(void)tm_trim_before_growth(h);
}

size_t tm_trim_for_memory(struct tm_heap *h)
{
	size_t bytes;

	tm_trim_lock();
	bytes = tm_trim_heap(h) + tm_trim_orphans();
	/* the caller's own heap is busy, so it is not stolen */
	tm_heap_each(take_from_sleeper, &bytes);
	tm_trim_unlock();
	bytes += tm_annex_trim(TM_ANNEX_ALL);
	return bytes + tm_purge_now();
}

static void trim_sleeper(struct tm_heap *h, void *arg)
{
	struct tm_trim_sum *sum = arg;
	bool pushed = tm_remote_waits(h) || tm_remote_collects(h);
	bool big = tm_heap_size(h) >= PENDING_SPANS;
	uint64_t slices, mark;

	if (h->tid == 0 || (tm_heap_size(h) < STEAL_WORTH_SPANS && !pushed))
		return;
	mark = signature(h);
	if (mark == h->trimmed_mark && !pushed)
		return; /* nothing has happened since */
	tm_heap_lock_long();
	if (is_owned_and_free(h)) {
		enum sleep sleep = look(h->tid, &slices);

		if (sleep == SLEEP_ASLEEP && mark == h->idle_mark && steal(h, slices)) {
			sum->released_bytes += tm_trim_heap(h);
			h->trimmed_mark = signature(h);
			return_heap(h);
		} else if (sleep != SLEEP_UNKNOWN && big) {
			sum->pending_bytes += (size_t)tm_heap_size(h) << TM_GRANULE_SHIFT;
		}
	} else if (big) {
		sum->pending_bytes += (size_t)tm_heap_size(h) << TM_GRANULE_SHIFT;
	}
	h->idle_mark = mark;
	tm_heap_unlock_long();
}

size_t tm_trim_heaps(uint64_t now_ms)
{
	static uint64_t last_ms;     /* [helper] there is one helper at a time */
	static size_t pending_bytes; /* [helper] */
	struct tm_trim_sum sum = {0, 0};

	if (now_ms - last_ms < TRIM_PERIOD_MS)
		return pending_bytes;
	last_ms = now_ms;
	tm_trim_lock();
	sum.released_bytes = tm_trim_orphans();
	tm_heap_each(trim_sleeper, &sum);
	tm_trim_unlock();
	/* after the other heaps, which have handed over by now what they freed for annexes */
	sum.released_bytes += tm_annex_tick();
	pending_bytes = sum.pending_bytes;
	return sum.released_bytes + sum.pending_bytes;
}
