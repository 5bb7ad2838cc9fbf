/* SPDX-License-Identifier: MIT */
/* purge: what is given back, when, and what is not; the helper that does it. */
#include <criterion/criterion.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/base/bits.h"
#include "shim/helper.h"
#include "shim/os/clock.h"
#include "shim/os/lock.h"
#include "shim/os/sys.h"
#include "tests/unit/heap_fake.h"

#define PAGES(bytes) ((bytes) / TM_PAGE_BYTES)

static uint64_t now_ms = 100000;

static size_t tick(int n)
{
	size_t left = 0;

	for (int i = 0; i < n; i++)
		left = tm_purge_tick(now_ms += TM_PURGE_TICK_MS);
	return left;
}

static char *taken(size_t bytes)
{
	char *p = tm_extent_take(TM_PART_LARGE, PAGES(bytes), 1);

	memset(p, 1, bytes);
	return p;
}

static void give(char *p, size_t bytes)
{
	tm_extent_give(TM_PART_LARGE, p, PAGES(bytes));
}

static size_t resident(const char *p, size_t bytes)
{
	static unsigned char seen[1 << 16];
	size_t n = 0;

	memset(seen, 0, sizeof(seen));
	if (syscall(SYS_mincore, p, bytes, seen) != 0)
		cr_assert_eq(errno, ENOMEM, "some of it is not even mapped");
	for (size_t i = 0; i < PAGES(bytes); i++)
		n += seen[i] & 1;
	return n * TM_PAGE_BYTES;
}

Test(purge, unneeded_memory_goes_after_the_decay_and_a_floor_stays)
{
	char *p;

	heap_fresh();
	p = taken(64 * MIB);
	give(p, 64 * MIB);
	cr_assert_eq(stats_of(TM_PART_LARGE).retained_bytes, 64 * MIB);
	tick(4);
	cr_assert_eq(kernel.dontneeds, 0, "half a second has not passed");
	cr_assert_eq(resident(p, 64 * MIB), 64 * MIB);
	cr_assert_eq(tick(3), 0, "nothing is left to wait for");
	cr_assert_eq(stats_of(TM_PART_LARGE).retained_bytes, 4 * MIB);
	cr_assert_leq(resident(p, 64 * MIB), 4 * MIB);
	heap_check();
}

/* A request's time is not spent on all that is free: a slice for each caller, until it is gone. */
Test(purge, callers_give_back_slice_by_slice)
{
	const size_t bytes = 200 * MIB;
	size_t before, most = 0;
	char *p;

	heap_fresh();
	p = taken(bytes);
	give(p, bytes);
	for (int i = 0; i < 200; i++) {
		before = kernel.dontneed_bytes;
		/* most come while the next tick is far */
		tm_purge_tick_by_caller(now_ms += i % 8 == 0 ? TM_PURGE_TICK_MS : 1);
		most = tm_bits_max(most, kernel.dontneed_bytes - before);
	}
	cr_assert_eq(stats_of(TM_PART_LARGE).retained_bytes, 4 * MIB);
	cr_assert_eq(most, TM_PURGE_CALLER_BYTES);
	cr_assert_eq(tm_purge_longest(), TM_PURGE_CALLER_BYTES);
	heap_check();
}

Test(purge, freed_ranges_go_slice_by_slice_where_callers_do_it)
{
	struct tm_range *r;
	int calls = 0;

	heap_fresh();
	r = tm_grow_alloc(100 * MIB, 50 * MIB);
	cr_assert_not_null(r);
	tm_grow_free(r);
	cr_assert_eq(tm_grow_retained(), 100 * MIB);
	for (size_t left = 100 * MIB; left > 4 * MIB; left = tm_grow_retained(), calls++) {
		tm_purge_tick_by_caller(now_ms += TM_PURGE_TICK_MS);
		cr_assert_leq(left - tm_grow_retained(), TM_PURGE_CALLER_BYTES);
		cr_assert_lt(calls, 100);
	}
	heap_check();
}

Test(purge, what_work_needs_stays)
{
	heap_fresh();
	for (int i = 0; i < 30; i++) {
		char *p = taken(48 * MIB);

		give(p, 48 * MIB);
		tick(1);
	}
	cr_assert_eq(kernel.dontneeds, 0);
	heap_check();
}

Test(purge, the_surplus_goes_while_work_goes_on)
{
	char *p;

	heap_fresh();
	p = taken(200 * MIB);
	give(p, 200 * MIB);
	for (int i = 0; i < 12; i++) {
		p = taken(48 * MIB);
		give(p, 48 * MIB);
		tick(1);
	}
	cr_assert_leq(stats_of(TM_PART_LARGE).retained_bytes, 52 * MIB);
	cr_assert_geq(stats_of(TM_PART_LARGE).retained_bytes, 48 * MIB);
	heap_check();
}

Test(purge, purged_memory_is_known_to_be_zero)
{
	char *p;

	heap_fresh();
	p = taken(32 * MIB);
	give(p, 32 * MIB);
	(void)tm_purge_now();
	cr_assert_eq(resident(p, 32 * MIB), 0);
	p = tm_extent_take_zero(TM_PART_LARGE, PAGES(32 * MIB), 1);
	cr_assert_eq(resident(p, 32 * MIB), 0, "calloc wrote nothing");
	heap_check();
}

Test(purge, refused_memory_is_kept_and_zeroed)
{
	char *p;

	heap_fresh();
	p = taken(32 * MIB);
	give(p, 32 * MIB);
	kernel.dontneed_err = -EINVAL;
	tick(10);
	cr_assert_gt(kernel.dontneeds, 0);
	heap_check();
	kernel.dontneeds = 0;
	tick(10);
	cr_assert_eq(kernel.dontneeds, 0, "not tried again");
	p = tm_extent_take_zero(TM_PART_LARGE, PAGES(32 * MIB), 1);
	for (size_t i = 0; i < 32 * MIB; i += 64)
		cr_assert_eq(p[i], 0);
	give(p, 32 * MIB);
	kernel.dontneed_err = 0;
	tick(10);
	cr_assert_gt(kernel.dontneed_bytes, 24 * MIB, "tried again after use");
	heap_check();
}

Test(purge, idle_granules_of_used_units_go_too)
{
	char *spans[512];

	heap_fresh();
	for (int i = 0; i < 512; i++) {
		spans[i] = tm_extent_take(TM_PART_SPAN, 16, 16);
		memset(spans[i], 1, TM_GRANULE_BYTES);
	}
	for (int i = 0; i < 512; i++)
		if (i % 8)
			tm_extent_give(TM_PART_SPAN, spans[i], 16);
	cr_assert_eq(stats_of(TM_PART_SPAN).retained_bytes, 0);
	cr_assert_eq(stats_of(TM_PART_SPAN).sparse_bytes, 448 * TM_GRANULE_BYTES);
	tick(10);
	cr_assert_leq(stats_of(TM_PART_SPAN).sparse_bytes, 2 * MIB);
	for (int i = 0; i < 512; i += 8)
		for (size_t k = 0; k < TM_GRANULE_BYTES; k++)
			cr_assert_eq(spans[i][k], 1);
	heap_check();
}

/* A tenth of what is live is kept beside it at first, so that no huge page is split for it. */
Test(purge, what_is_idle_beside_much_live_memory_goes_within_two_seconds)
{
	static char *spans[1024];

	heap_fresh();
	for (int i = 0; i < 1024; i++)
		spans[i] = tm_extent_take(TM_PART_SPAN, 16, 16);
	for (int i = 0; i < 1024; i += 16)
		tm_extent_give(TM_PART_SPAN, spans[i], 16);
	tick(10);
	cr_assert_eq(stats_of(TM_PART_SPAN).sparse_bytes, 4 * MIB);
	tick(8);
	cr_assert_leq(stats_of(TM_PART_SPAN).sparse_bytes, MIB);
	heap_check();
}

Test(purge, now_gives_everything)
{
	char *a, *b;
	void *p, *fence;

	heap_fresh();
	a = taken(10 * MIB);
	b = taken(10 * MIB);
	give(a, 10 * MIB);
	p = tm_large_alloc(100000, 0, TM_FILL_ANY);
	fence = tm_large_alloc(100000, 0, TM_FILL_ANY);
	p = tm_large_resize(p, tm_zone_granule(p), 20 * MIB);
	memset(p, 1, 20 * MIB);
	cr_assert_eq(tm_large_free(p, tm_zone_granule(p)), 0);
	cr_assert_geq(tm_purge_now(), 29 * MIB);
	cr_assert_leq(tm_purge_retained(), MIB);
	cr_assert_eq(b[0], 1);
	cr_assert_eq(tm_large_free(fence, tm_zone_granule(fence)), 0);
	heap_check();
}

Test(purge, grown_blocks_give_back_what_they_no_longer_cover)
{
	char *p, *fence;

	heap_fresh();
	p = tm_large_alloc(100000, 0, TM_FILL_ANY);
	fence = tm_large_alloc(100000, 0, TM_FILL_ANY);
	p = tm_large_resize(p, tm_zone_granule(p), 64 * MIB);
	memset(p, 1, 64 * MIB);
	p = tm_large_resize(p, tm_zone_granule(p), 4 * MIB);
	cr_assert_eq(tm_grow_retained(), 60 * MIB);
	tick(3);
	cr_assert_eq(tm_grow_retained(), 60 * MIB);
	tick(5);
	cr_assert_leq(tm_grow_retained(), 4 * MIB);
	cr_assert_eq(p[4 * MIB - 1], 1);
	p = tm_large_resize(p, tm_zone_granule(p), 64 * MIB);
	memset(p, 1, 64 * MIB);
	cr_assert_eq(fence[0] & 0, 0);
	heap_check();
}

Test(purge, addresses_at_the_end_go_back_too)
{
	char *low, *p;

	heap_fresh();
	low = taken(MIB);
	p = taken(300 * MIB);
	give(p, 300 * MIB);
	tick(8);
	cr_assert_leq(stats_of(TM_PART_LARGE).mapped_bytes, 48 * MIB);
	heap_check();
	(void)tm_purge_now();
	cr_assert_leq(stats_of(TM_PART_LARGE).mapped_bytes, 2 * MIB);
	heap_check();
	p = taken(300 * MIB);
	cr_assert_eq(low[0], 1);
	give(p, 300 * MIB);
	kernel.fail_at = 1;
	kernel.fail_rest = 1;
	kernel.calls = 0;
	(void)tm_purge_now();
	heap_check();
	p = tm_extent_take_zero(TM_PART_LARGE, PAGES(300 * MIB), 1);
	for (size_t i = 0; i < 300 * MIB; i += 512)
		cr_assert_eq(p[i], 0);
	heap_check();
}

Test(purge, options_are_followed)
{
	struct tm_purge_options options = {.giveback = TM_GIVEBACK_OFF};
	char *p;

	heap_fresh();
	tm_purge_configure(&options);
	p = taken(64 * MIB);
	give(p, 64 * MIB);
	tick(20);
	cr_assert_eq(kernel.dontneeds, 0);
	options.giveback = TM_GIVEBACK_EAGER;
	tm_purge_configure(&options);
	tick(2);
	cr_assert_eq(stats_of(TM_PART_LARGE).retained_bytes, 0);
	options.giveback = TM_GIVEBACK_AUTO;
	for (int i = 0; i < TM_PART_COUNT; i++)
		options.policy[i] =
			(struct tm_purge_policy){.keep_bytes = 40 * MIB, .decay_ms = 2000};
	tm_purge_configure(&options);
	p = taken(64 * MIB);
	give(p, 64 * MIB);
	tick(15);
	cr_assert_eq(stats_of(TM_PART_LARGE).retained_bytes, 64 * MIB);
	tick(10);
	cr_assert_eq(stats_of(TM_PART_LARGE).retained_bytes, 40 * MIB);
}

/* Sessions of some buffers each; whatever ends is followed by another at once. */
enum { SESSIONS = 100, BUFFERS = 4 };
static void *buffer[SESSIONS][BUFFERS];
static size_t buffer_bytes[SESSIONS][BUFFERS];
static size_t live_bytes;

static void session(int s, uint64_t *seed)
{
	uint64_t n = 1 + random_next(seed) % BUFFERS;

	for (uint64_t i = 0; i < BUFFERS; i++) {
		size_t bytes = (MIB << random_next(seed) % 5) + random_next(seed) % 256 * 4096;

		if (buffer[s][i] != NULL)
			tm_extent_give(TM_PART_LARGE, buffer[s][i], PAGES(buffer_bytes[s][i]));
		live_bytes -= buffer_bytes[s][i];
		buffer_bytes[s][i] = i < n ? bytes : 0;
		buffer[s][i] = NULL;
		live_bytes += buffer_bytes[s][i];
	}
	for (uint64_t i = 0; i < n; i++)
		buffer[s][i] = tm_extent_take(TM_PART_LARGE, PAGES(buffer_bytes[s][i]), 1);
}

Test(purge, what_sessions_do_not_want_again_goes_between_two_ticks)
{
	uint64_t seed = 5;
	double sum = 0, split;

	heap_fresh();
	for (int s = 0; s < SESSIONS; s++)
		session(s, &seed);
	for (int i = 0; i < 1000; i++) {
		struct tm_part_stats st;

		session((int)(random_next(&seed) % SESSIONS), &seed);
		/* the helper is woken */
		tm_purge_surplus();
		st = stats_of(TM_PART_LARGE);
		sum += (double)(st.retained_bytes + st.sparse_bytes) / (double)live_bytes;
	}
	cr_assert_lt(sum / 1000, .06, "%.3f of what is live is idle", sum / 1000);
	cr_assert_gt(kernel.dontneeds, 0);
	split = (double)kernel.split_bytes / (double)kernel.dontneed_bytes;
	cr_assert_lt(split, .09, "%.3f of what went were parts of units in use", split);
	heap_check();
}

Test(purge, eager_keeps_nothing_beside_what_is_live)
{
	struct tm_purge_options options = {.giveback = TM_GIVEBACK_EAGER};
	char *p, *q;

	heap_fresh();
	tm_purge_configure(&options);
	p = taken(201 * MIB);
	q = taken(8 * MIB);
	tm_extent_give(TM_PART_LARGE, p, PAGES(MIB));
	tm_extent_give(TM_PART_LARGE, p + 3 * MIB, PAGES(6 * MIB));
	give(q, 8 * MIB);
	tick(1);
	cr_assert_eq(stats_of(TM_PART_LARGE).retained_bytes, 0);
	cr_assert_eq(stats_of(TM_PART_LARGE).sparse_bytes, 0);
	heap_check();
}

static void start_world(void)
{
	heap_fresh();
	tm_zone.os = &tm_zone_os_real;
	cr_assert_eq(tm_fork_generation_init(), 0);
	tm_clock_init();
}

/* As long as only a hang takes. */
static bool wait_until(bool (*true_now)(void))
{
	for (int ms = 300000; ms > 0; ms -= 10) {
		if (true_now())
			return true;
		usleep(10000);
	}
	return true_now();
}

static bool no_helper(void)
{
	return tm_helper_tid() == 0;
}

static bool all_given(void)
{
	return tm_purge_retained() <= 9 * MIB;
}

/* The helper has no state of ThreadSanitizer's, whose code would run in it. */
#if defined(__SANITIZE_THREAD__)
static bool can_help(void)
{
	return false;
}
#else
static bool can_help(void)
{
	char buf[4096] = "";
	FILE *f = fopen("/proc/self/status", "r");
	size_t n = f ? fread(buf, 1, sizeof(buf) - 1, f) : 0;

	if (f)
		fclose(f);
	return n != 0 && strstr(buf, "Seccomp:\t0") != NULL;
}
#endif

Test(purge, a_helper_comes_gives_back_and_goes)
{
	char *p;

	if (!can_help())
		cr_skip_test("no helper under a seccomp filter or ThreadSanitizer");
	start_world();
	tm_helper_init(TM_THREAD_AUTO, NULL);
	p = taken(16 * MIB);
	give(p, 16 * MIB);
	cr_assert_eq(tm_helper_tid(), 0, "not for so little");
	p = taken(100 * MIB);
	give(p, 100 * MIB);
	cr_assert_neq(tm_helper_tid(), 0);
	cr_assert(wait_until(all_given));
	/* the last pages are cut out of the free memory just before the kernel takes them */
	cr_assert(wait_until(no_helper));
	cr_assert_leq(resident(p, 100 * MIB), 8 * MIB);
	/* and again */
	p = taken(100 * MIB);
	give(p, 100 * MIB);
	cr_assert_neq(tm_helper_tid(), 0);
	tm_helper_stop();
	cr_assert_eq(tm_helper_tid(), 0);
	cr_assert_eq(unshare(CLONE_FS), 0);
	heap_check();
}

/* The helper stands in its trim until it is let on. */
static _Atomic int held, let_on;
static _Atomic uint64_t gone_ns;

static size_t stand(uint64_t now)
{
	const struct timespec moment = {.tv_nsec = 1000000};
	static _Atomic uint32_t word;

	(void)now;
	for (held++; let_on < held;)
		tm_sys_futex(&word, FUTEX_WAIT_PRIVATE, 0, &moment);
	return 1;
}

static int timed_dontneed(void *at, size_t bytes)
{
	if (gone_ns == 0)
		gone_ns = tm_clock_ns();
	return tm_mem_dontneed(at, bytes);
}

/* If an order to hurry that it gets while it works were lost, it would sleep for a tick each time. */
Test(purge, a_helper_hurries_after_what_it_does)
{
	struct tm_purge_options options = {.giveback = TM_GIVEBACK_EAGER};
	struct tm_zone_os os = tm_zone_os_real;
	uint64_t least = UINT64_MAX;

	if (!can_help())
		cr_skip_test("no helper under a seccomp filter or ThreadSanitizer");
	start_world();
	os.dontneed = timed_dontneed;
	tm_zone.os = &os;
	tm_purge_configure(&options);
	tm_helper_init(TM_THREAD_AUTO, stand);
	give(taken(100 * MIB), 100 * MIB);
	for (int i = 1; i <= 50 && least >= TM_PURGE_TICK_MS * UINT64_C(1000000); i++) {
		char *p;

		while (held < i)
			usleep(1000);
		p = taken(64 * MIB);
		gone_ns = 0;
		tm_purge_note_surplus();
		give(p, 64 * MIB);
		uint64_t from = tm_clock_ns();
		let_on = i;
		while (gone_ns == 0)
			usleep(1000);
		least = tm_bits_min(least, gone_ns - from);
	}
	let_on = INT_MAX;
	cr_assert_lt(least, TM_PURGE_TICK_MS * UINT64_C(1000000));
	tm_helper_stop();
	heap_check();
}

Test(purge, a_forked_child_gives_back_too)
{
	int status;
	char *p;
	pid_t child;

	if (!can_help())
		cr_skip_test("no helper under a seccomp filter or ThreadSanitizer");
	start_world();
	tm_helper_init(TM_THREAD_AUTO, NULL);
	p = taken(100 * MIB);
	give(p, 100 * MIB);
	tm_helper_stop();
	child = fork();
	if (child == 0) {
		tm_lock_fork_reinit_all();
		tm_helper_fork_child();
		if (tm_helper_tid() == 0)
			_exit(1);
		if (!wait_until(all_given))
			_exit(2);
		_exit(wait_until(no_helper) ? 0 : 3);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
}

Test(purge, without_a_thread_the_callers_do_it)
{
	char *p;

	start_world();
	tm_helper_init(TM_THREAD_NEVER, NULL);
	p = taken(100 * MIB);
	give(p, 100 * MIB);
	cr_assert_eq(tm_helper_tid(), 0);
	for (int i = 0; i < 10000 && !all_given(); i++) {
		for (int k = 0; k < 100; k++) {
			p = tm_extent_take(TM_PART_LARGE, 16, 1);
			give(p, TM_GRANULE_BYTES);
		}
		usleep(20000);
	}
	cr_assert(all_given());
	cr_assert_eq(tm_helper_tid(), 0);
	heap_check();
}

static _Atomic int handled;

static void on_signal(int sig)
{
	(void)sig;
	handled = (int)syscall(SYS_gettid);
}

Test(purge, signals_are_not_for_the_helper)
{
	sigset_t all, old;
	char *p;

	if (!can_help())
		cr_skip_test("no helper under a seccomp filter or ThreadSanitizer");
	start_world();
	tm_helper_init(TM_THREAD_AUTO, NULL);
	signal(SIGUSR1, on_signal);
	p = taken(100 * MIB);
	give(p, 100 * MIB);
	cr_assert_neq(tm_helper_tid(), 0);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	kill(getpid(), SIGUSR1);
	usleep(50000);
	cr_assert_eq(handled, 0, "the helper takes no signal");
	sigprocmask(SIG_SETMASK, &old, NULL);
	cr_assert_eq(handled, getpid(), "and ours are as they were");
}
