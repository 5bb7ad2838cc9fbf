/* SPDX-License-Identifier: MIT */
/* lock: exclusion, sleeping, forks of every kind. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/base/assert.h"
#include "shim/os/lock.h"

#define THREADS 4
#define TURNS 20000

static struct tm_lock lock = TM_LOCK_INIT(TM_RANK_ZONE);
static struct tm_lock outer = TM_LOCK_INIT(TM_RANK_HEAP);
static struct tm_lock same_rank = TM_LOCK_INIT(TM_RANK_ZONE);
static long counter;

static void *count_under_lock(void *unused)
{
	for (int i = 0; i < TURNS; i++) {
		cr_assert_eq(tm_lock_acquire(&lock), 0);
		counter++;
		if (i % 1000 == 0)
			usleep(100); /* make others sleep on it */
		tm_lock_release(&lock);
	}
	return unused;
}

Test(lock, threads_exclude_each_other)
{
	pthread_t threads[THREADS];

	tm_fork_generation_init();
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, count_under_lock, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	cr_assert_eq(counter, THREADS * TURNS);
	cr_assert_eq(atomic_load(&lock.word), 0);
}

Test(lock, works_zeroed_and_before_the_generation_exists)
{
	static struct tm_lock zeroed;

	cr_assert_eq(tm_lock_acquire(&zeroed), 0);
	cr_assert_not(tm_lock_try(&zeroed));
	cr_assert(tm_lock_is_mine(&zeroed));
	tm_lock_release(&zeroed);
	cr_assert(tm_lock_try(&zeroed));
	tm_lock_release(&zeroed);
}

static void *boot_and_wait(void *held)
{
	tm_fork_generation_init();
	cr_assert_eq(tm_lock_acquire(held), 0);
	tm_lock_release(held);
	return NULL;
}

Test(lock, a_holder_from_before_boot_is_not_robbed)
{
	pthread_t thread;

	tm_lock_acquire(&lock);
	pthread_create(&thread, NULL, boot_and_wait, &lock);
	usleep(50000);
	cr_assert(tm_lock_is_mine(&lock));
	tm_lock_release(&lock);
	pthread_join(thread, NULL);
}

static int child_status(pid_t child)
{
	int status = -1;

	cr_assert_gt(child, 0);
	cr_assert_eq(waitpid(child, &status, 0), child);
	return status;
}

/* In a child that has the lock word of a thread it does not have. */
static int steal_in_child(void)
{
	uint32_t generation = tm_fork_generation();
	int first = tm_lock_acquire(&lock);
	bool again = tm_lock_try(&lock);

	tm_lock_release(&lock);
	return generation == 2 && first == TM_LOCK_STOLEN && !again && tm_lock_acquire(&lock) == 0
		       ? 0
		       : 1;
}

static pid_t raw_clone(unsigned long flags)
{
	return (pid_t)syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
}

/* qemu-user takes MADV_WIPEONFORK for a hint and ignores it. */
static void skip_where_nothing_is_wiped(void)
{
	if (getenv("TM_EMULATED"))
		cr_skip_test("no page is wiped in a child under qemu-user");
}

Test(lock, a_raw_child_steals_what_a_vanished_thread_held)
{
	pid_t child;

	skip_where_nothing_is_wiped();
	cr_assert_eq(tm_fork_generation_init(), 0);
	tm_lock_acquire(&lock);
	child = raw_clone(0);
	if (child == 0)
		_exit(steal_in_child());
	cr_assert_eq(child_status(child), 0);
	/* The parent is what it was. */
	cr_assert_eq(tm_fork_generation(), 1);
	cr_assert_not(tm_lock_try(&lock));
	tm_lock_release(&lock);
}

Test(lock, a_grandchild_is_of_the_third_generation)
{
	pid_t child;

	skip_where_nothing_is_wiped();
	tm_fork_generation_init();
	child = raw_clone(0);
	if (child == 0) {
		pid_t grandchild;

		tm_lock_acquire(&lock);
		grandchild = raw_clone(0);
		if (grandchild == 0)
			_exit(tm_lock_acquire(&lock) == TM_LOCK_STOLEN && tm_fork_generation() == 3
				      ? 0
				      : 1);
		_exit(child_status(grandchild) ? 1 : 0);
	}
	cr_assert_eq(child_status(child), 0);
}

#if !defined(__SANITIZE_THREAD__) /* which turns vfork into fork */
Test(lock, a_vfork_child_is_of_the_same_generation_and_steals_nothing)
{
	pid_t child;

	tm_fork_generation_init();
	tm_lock_acquire(&lock);
	child = vfork();
	if (child == 0)
		_exit(tm_fork_generation() == 1 && !tm_lock_try(&lock) ? 0 : 1);
	cr_assert_eq(child_status(child), 0);
	tm_lock_release(&lock);
}
#endif

static void *hold_for_a_while(void *unused)
{
	tm_lock_acquire(&lock);
	usleep(100000);
	counter = 1;
	tm_lock_release(&lock);
	return unused;
}

Test(lock, the_fork_walk_waits_for_holders_and_lets_its_own_thread_through)
{
	pthread_t thread;
	pid_t child;

	tm_fork_generation_init();
	tm_lock_register(&lock);
	tm_lock_register(&outer);
	tm_lock_register(&same_rank);
	tm_lock_register(&lock);
	pthread_create(&thread, NULL, hold_for_a_while, NULL);
	while (atomic_load(&lock.word) == 0)
		sched_yield();
	tm_lock_fork_acquire_all();
	cr_assert_eq(counter, 1);
	cr_assert_eq(tm_lock_acquire(&lock), 0); /* a handler that runs after ours */
	tm_lock_release(&lock);
	cr_assert(tm_lock_try(&same_rank));
	tm_lock_release(&same_rank);
	cr_assert_neq(atomic_load(&lock.word), 0);
	child = raw_clone(0);
	if (child == 0) {
		tm_lock_fork_reinit_all();
		_exit(tm_lock_try(&outer) && tm_lock_acquire(&lock) == 0 && tm_lock_try(&same_rank)
			      ? 0
			      : 1);
	}
	tm_lock_fork_release_all();
	cr_assert_eq(child_status(child), 0);
	cr_assert_eq(atomic_load(&lock.word), 0);
	cr_assert_eq(atomic_load(&outer.word), 0);
	pthread_join(thread, NULL);
}

#if TM_DEBUG
Test(lock, the_order_of_ranks_is_enforced, .signal = SIGABRT)
{
	tm_lock_acquire(&lock);
	tm_lock_acquire(&outer);
}
#endif

Test(lock, every_rank_has_its_name)
{
	cr_assert_str_eq(tm_lock_rank_name(TM_RANK_ZONE), "ZONE");
	cr_assert_str_eq(tm_lock_rank_name(TM_RANK_COUNT), "?");
	cr_assert_lt(TM_RANK_COUNT, 64);
}
