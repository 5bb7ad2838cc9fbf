/* SPDX-License-Identifier: MIT */
/* lock: see lock.h. */
#include "shim/os/lock.h"

#include <errno.h>
#include <linux/futex.h>

#include "shim/base/assert.h"
#include "shim/os/mem.h"
#include "shim/os/proc.h"
#include "shim/os/sys.h"

/*
 * Spins before sleeping. Critical sections last 0.1 to 5 us, a sleep and a wake-up together cost
 * about 10 us. At about 40 cycles per pause instruction this is 2 us.
 */
#define SPIN_TURNS 100

/* A waiter rechecks the generation after this time: it may be in a child forked meanwhile. */
#define SLEEP_NS 100000000L

_Static_assert(sizeof(struct tm_lock) == 16, "a lock shares the line of what it guards");

/* The wiped page, which holds the generation; NULL before boot. */
static _Atomic(_Atomic uint32_t *) generation_page;
/* The last generation used; copied by fork. */
static _Atomic uint32_t generation_last TM_AT_FORK_DATA;

static struct tm_lock *walk_first[TM_RANK_COUNT] TM_AT_START_DATA;
static struct tm_lock *walk_last[TM_RANK_COUNT] TM_AT_START_DATA;
/* Whether the kernel supports MADV_WIPEONFORK. */
static bool generation_wiped;
static struct tm_lock register_lock TM_AT_FORK_DATA = TM_LOCK_INIT(TM_RANK_NONE);
/* thread_key() of the thread between fork's prepare and its end, else 0. */
static _Atomic uintptr_t walker TM_AT_FORK_DATA;

/* Its address identifies the thread without a system call. */
static TM_TLS char thread_anchor;

#if TM_DEBUG
/* One bit per rank that this thread holds through tm_lock_acquire. */
static TM_TLS uint64_t held_ranks;
static TM_TLS uint32_t held_in; /* the generation they were taken in */
#endif

static const char rank_names[][12] = {
#define X(rank, meaning) #rank,
#include "shim/base/lock_ranks.def"
#undef X
};

const char *tm_lock_rank_name(unsigned int rank)
{
	return rank < TM_RANK_COUNT ? rank_names[rank] : "?";
}

TM_AT_START_CODE int tm_fork_generation_init(void)
{
	_Atomic uint32_t *page;
	int err;

	if (atomic_load_explicit(&generation_page, memory_order_relaxed))
		return 0;
	page = tm_mem_map(tm_proc_page_bytes());
	if (page == NULL)
		return -ENOMEM;
	err = tm_mem_wipeonfork(page, tm_proc_page_bytes());
	generation_wiped = err == 0;
	atomic_store_explicit(&generation_last, 1, memory_order_relaxed);
	atomic_store_explicit(page, 1, memory_order_relaxed);
	atomic_store_explicit(&generation_page, page, memory_order_release);
	return err;
}

/* The page reads 0: this process image is new. Several of its threads may notice at once. */
static TM_AT_START_CODE TM_COLD uint32_t generation_next(_Atomic uint32_t *page)
{
	uint32_t last = atomic_load_explicit(&generation_last, memory_order_relaxed);
	uint32_t next = last + 1;
	uint32_t expected = 0;

	/* a generation of 0 in the lock word means "before boot" only */
	if ((next & TM_LOCK_GENERATION_MASK) == 0)
		next++;
	if (!atomic_compare_exchange_strong_explicit(page, &expected, next, memory_order_acq_rel,
						     memory_order_acquire))
		return expected;
	atomic_store_explicit(&generation_last, next, memory_order_release);
	return next;
}

TM_AT_START_CODE uint32_t tm_fork_generation(void)
{
	_Atomic uint32_t *page = atomic_load_explicit(&generation_page, memory_order_acquire);
	uint32_t generation;

	if (TM_UNLIKELY(page == NULL))
		return 0;
	generation = atomic_load_explicit(page, memory_order_acquire);
	return TM_LIKELY(generation != 0) ? generation : generation_next(page);
}

/* For the fork handler: starts a new generation if the kernel did not wipe the page. */
static TM_AT_START_CODE void generation_bump(void)
{
	_Atomic uint32_t *page = atomic_load_explicit(&generation_page, memory_order_acquire);

	if (page == NULL)
		return;
	if (!generation_wiped)
		atomic_store_explicit(page, 0, memory_order_relaxed);
	(void)generation_next(page);
}

static uintptr_t thread_key(void)
{
	return (uintptr_t)&thread_anchor;
}

static uint32_t own_mark(void)
{
	/* thread control blocks are pages apart; the low bit makes it nonzero */
	return ((uint32_t)(thread_key() >> 6) & TM_LOCK_MARK_MASK) | 1;
}

static TM_AT_START_CODE uint32_t own_word(void)
{
	return own_mark() | (tm_fork_generation() & TM_LOCK_GENERATION_MASK)
				    << TM_LOCK_GENERATION_SHIFT;
}

/* A word of generation 0 was taken before boot: its holder may be the booting thread. */
static bool is_orphan(uint32_t seen, uint32_t mine)
{
	uint32_t a = seen >> TM_LOCK_GENERATION_SHIFT & TM_LOCK_GENERATION_MASK;
	uint32_t b = mine >> TM_LOCK_GENERATION_SHIFT & TM_LOCK_GENERATION_MASK;

	return a != b && a != 0;
}

/* The forking thread holds all registered locks, so it may acquire each of them again. */
static TM_AT_START_CODE bool passes_through(const struct tm_lock *lock)
{
	return lock->registered &&
	       atomic_load_explicit(&walker, memory_order_relaxed) == thread_key();
}

/* Before waiting: checks the rank order. */
static void rank_check(const struct tm_lock *lock)
{
#if TM_DEBUG
	if (lock->rank == TM_RANK_NONE)
		return;
	if (held_in != tm_fork_generation()) {
		/* locks held in the parent are not held here */
		held_in = tm_fork_generation();
		held_ranks = 0;
	}
	tm_assert((held_ranks >> lock->rank) == 0);
#else
	(void)lock;
#endif
}

/* After the lock is taken: a signal handler that interrupts the wait may take other locks. */
static void rank_enter(const struct tm_lock *lock)
{
#if TM_DEBUG
	if (lock->rank != TM_RANK_NONE)
		held_ranks |= (uint64_t)1 << lock->rank;
#else
	(void)lock;
#endif
}

static void rank_leave(const struct tm_lock *lock)
{
#if TM_DEBUG
	if (lock->rank != TM_RANK_NONE)
		held_ranks &= ~((uint64_t)1 << lock->rank);
#else
	(void)lock;
#endif
}

static void pause_cpu(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#else
	atomic_signal_fence(memory_order_seq_cst);
#endif
}

static bool take_free(struct tm_lock *lock, uint32_t mine)
{
	uint32_t free_word = 0;

	return atomic_compare_exchange_strong_explicit(&lock->word, &free_word, mine,
						       memory_order_acquire, memory_order_relaxed);
}

/* Takes over a word whose holder is of another generation. */
static bool steal(struct tm_lock *lock, uint32_t seen, uint32_t mine)
{
	if (!atomic_compare_exchange_strong_explicit(&lock->word, &seen, mine, memory_order_acquire,
						     memory_order_relaxed))
		return false;
	lock->depth = 0;
	return true;
}

static TM_COLD int acquire_slow(struct tm_lock *lock, uint32_t mine)
{
	static const struct timespec nap = {0, SLEEP_NS};
	uint32_t seen;

	for (unsigned int turn = 0;; turn++) {
		seen = atomic_load_explicit(&lock->word, memory_order_relaxed);
		if (seen == 0) {
			/*
			 * after a sleep there may be other waiters: keep the bit, so that release
			 * wakes them
			 */
			if (take_free(lock, turn > SPIN_TURNS ? mine | TM_LOCK_WAITERS : mine))
				return 0;
			continue;
		}
		if (is_orphan(seen, mine)) {
			if (steal(lock, seen, mine))
				return TM_LOCK_STOLEN;
			continue;
		}
		if (passes_through(lock)) {
			lock->depth++;
			return 0;
		}
		if (turn < SPIN_TURNS) {
			pause_cpu();
			continue;
		}
		if (!(seen & TM_LOCK_WAITERS) &&
		    !atomic_compare_exchange_strong_explicit(
			    &lock->word, &seen, seen | TM_LOCK_WAITERS, memory_order_relaxed,
			    memory_order_relaxed))
			continue;
		tm_sys_futex(&lock->word, FUTEX_WAIT_PRIVATE, seen | TM_LOCK_WAITERS, &nap);
		mine = own_word();
		turn = SPIN_TURNS;
	}
}

static TM_AT_START_CODE int acquire(struct tm_lock *lock)
{
	uint32_t mine = own_word();

	return TM_LIKELY(take_free(lock, mine)) ? 0 : acquire_slow(lock, mine);
}

static TM_AT_START_CODE void release(struct tm_lock *lock)
{
	uint32_t old;

	if (TM_UNLIKELY(lock->depth)) {
		lock->depth--;
		return;
	}
	old = atomic_exchange_explicit(&lock->word, 0, memory_order_release);
	tm_assert((old & TM_LOCK_MARK_MASK) != 0);
	if (TM_UNLIKELY(old & TM_LOCK_WAITERS))
		tm_sys_futex(&lock->word, FUTEX_WAKE_PRIVATE, 1, NULL);
}

TM_AT_START_CODE int tm_lock_acquire(struct tm_lock *lock)
{
	int rc;

	rank_check(lock);
	rc = acquire(lock);
	rank_enter(lock);
	return rc;
}

bool tm_lock_try(struct tm_lock *lock)
{
	if (take_free(lock, own_word()))
		return true;
	if (!passes_through(lock))
		return false;
	lock->depth++;
	return true;
}

TM_AT_START_CODE bool tm_lock_try_steal(struct tm_lock *lock)
{
	uint32_t mine = own_word();
	uint32_t seen = atomic_load_explicit(&lock->word, memory_order_relaxed);

	return tm_lock_try(lock) || (is_orphan(seen, mine) && steal(lock, seen, mine));
}

TM_AT_START_CODE void tm_lock_release(struct tm_lock *lock)
{
	rank_leave(lock);
	release(lock);
}

TM_AT_START_CODE bool tm_lock_is_mine(const struct tm_lock *lock)
{
	uint32_t word = atomic_load_explicit(&lock->word, memory_order_relaxed);

	return (word & TM_LOCK_MARK_MASK) == own_mark();
}

TM_AT_START_CODE bool tm_lock_holds_any(void)
{
	for (unsigned int rank = 0; rank < TM_RANK_COUNT; rank++)
		for (struct tm_lock *lock = walk_first[rank]; lock; lock = lock->next)
			if (tm_lock_is_mine(lock))
				return true;
	return tm_lock_is_mine(&register_lock);
}

TM_AT_START_CODE void tm_lock_register(struct tm_lock *lock)
{
	tm_require(lock->rank < TM_RANK_COUNT);
	tm_lock_acquire(&register_lock);
	if (!lock->registered) {
		lock->next = NULL;
		if (walk_last[lock->rank])
			walk_last[lock->rank]->next = lock;
		else
			walk_first[lock->rank] = lock;
		walk_last[lock->rank] = lock;
		lock->registered = 1;
	}
	tm_lock_release(&register_lock);
}

TM_AT_START_CODE void tm_lock_fork_acquire_all(void)
{
	acquire(&register_lock);
	for (unsigned int rank = 0; rank < TM_RANK_COUNT; rank++) {
		for (struct tm_lock *lock = walk_first[rank]; lock; lock = lock->next)
			acquire(lock);
	}
	atomic_store_explicit(&walker, thread_key(), memory_order_relaxed);
}

TM_AT_START_CODE void tm_lock_fork_release_all(void)
{
	atomic_store_explicit(&walker, 0, memory_order_relaxed);
	for (unsigned int rank = TM_RANK_COUNT; rank-- > 0;) {
		for (struct tm_lock *lock = walk_first[rank]; lock; lock = lock->next)
			release(lock);
	}
	release(&register_lock);
}

static void keep_if_mine(struct tm_lock *lock)
{
	if (tm_lock_is_mine(lock))
		atomic_store_explicit(&lock->word, own_word(), memory_order_relaxed);
}

void tm_lock_fork_keep_mine(void)
{
	generation_bump();
	for (unsigned int rank = 0; rank < TM_RANK_COUNT; rank++) {
		for (struct tm_lock *lock = walk_first[rank]; lock; lock = lock->next)
			keep_if_mine(lock);
	}
	keep_if_mine(&register_lock);
}

static TM_AT_START_CODE void reinit(struct tm_lock *lock)
{
	lock->depth = 0;
	atomic_store_explicit(&lock->word, 0, memory_order_relaxed);
}

TM_AT_START_CODE void tm_lock_fork_reinit_all(void)
{
	atomic_store_explicit(&walker, 0, memory_order_relaxed);
	for (unsigned int rank = 0; rank < TM_RANK_COUNT; rank++) {
		for (struct tm_lock *lock = walk_first[rank]; lock; lock = lock->next)
			reinit(lock);
	}
	reinit(&register_lock);
	generation_bump();
}
