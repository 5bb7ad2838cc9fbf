/* SPDX-License-Identifier: MIT */
/*
 * steal: how the helper gets hold of a heap whose thread sleeps.
 *
 * The owner's fast path takes no lock, so nothing can be taken from a running thread. But a thread
 * that is asleep in a system call is not inside an allocation function. So: note how often the
 * thread has been scheduled and that it is in a system call; set the busy bit in its TLS word by a
 * locked compare-and-swap; note again. If it has not been scheduled in between, it has executed
 * nothing since before the swap, and the next allocation it makes will see the bit and wait.
 * Where /proc cannot be read, heaps of living threads are left alone; their owners trim.
 */
#include <linux/futex.h>

#include "shim/base/fmt.h"
#include "shim/heap/trim.h"
#include "shim/os/lock.h"
#include "shim/os/proc.h"
#include "shim/os/sys.h"

/* Heaps smaller than this are not worth reading /proc for. */
#define STEAL_WORTH_SPANS 8u

/* Heaps are looked at this often; a thread that slept from one look to the next is idle. */
#define TRIM_PERIOD_MS 250u

/* Not stopped in a fault but asleep in a system call; how often it was scheduled. */
static bool asleep(int tid, uint64_t *ret_slices)
{
	char path[64], buf[128];
	const char *p = buf;

	tm_fmt(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	if (tm_proc_read(path, buf, sizeof(buf)) <= 0 || buf[0] < '0' || buf[0] > '9')
		return false; /* "running", or "-1": stopped in a fault */
	tm_fmt(path, sizeof(path), "/proc/self/task/%d/schedstat", tid);
	if (tm_proc_read(path, buf, sizeof(buf)) <= 0)
		return false;
	for (int field = 0; field < 2; field++) {
		while (*p != '\0' && *p != ' ')
			p++;
		while (*p == ' ')
			p++;
	}
	*ret_slices = 0;
	for (; *p >= '0' && *p <= '9'; p++)
		*ret_slices = *ret_slices * 10 + (uint64_t)(*p - '0');
	return *ret_slices != 0;
}

static bool steal(struct tm_heap *h, uint64_t slices_before)
{
	uintptr_t word = (uintptr_t)h;
	uint64_t slices;

	atomic_store_explicit(&h->stolen, 1, memory_order_seq_cst);
	if (__atomic_compare_exchange_n(h->tls_word, &word, word | TM_HEAP_BUSY, false,
					__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
		if (asleep(h->tid, &slices) && slices == slices_before)
			return true;
		/*
		 * It woke. Had it begun an allocation just before the swap, it restores the word itself;
		 * else it waits for us.
		 */
		word |= TM_HEAP_BUSY;
		__atomic_compare_exchange_n(h->tls_word, &word, (uintptr_t)h, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	}
	atomic_store_explicit(&h->stolen, 0, memory_order_release);
	tm_sys_futex(&h->stolen, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL);
	return false;
}

static void return_heap(struct tm_heap *h)
{
	__atomic_store_n(h->tls_word, (uintptr_t)h, __ATOMIC_RELEASE);
	atomic_store_explicit(&h->stolen, 0, memory_order_release);
	tm_sys_futex(&h->stolen, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL);
}

void tm_trim_wait(struct tm_heap *h)
{
	const struct timespec limit = {.tv_nsec = 10000000};

	while (atomic_load_explicit(&h->stolen, memory_order_acquire) != 0)
		tm_sys_futex(&h->stolen, FUTEX_WAIT_PRIVATE, 1, &limit);
}

/*
 * Parking slots is done in two steps, and a stolen heap has its owner's word changed: a fork in
 * between would leave the child with slots on two lists, or with a heap that nobody returns.
 */
static struct tm_lock trim_lock = TM_LOCK_INIT(TM_RANK_TRIM);

void tm_trim_init(void)
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

size_t tm_trim_orphans(void)
{
	size_t bytes = 0;

	tm_heap_lock();
	for (struct tm_heap *h = tm_heap_orphan_first(); h != NULL; h = h->next_orphan) {
		if (h->trimmed_mark == 1 &&
		    atomic_load_explicit(&h->remote, memory_order_relaxed) == NULL)
			continue;
		bytes += tm_trim_heap(h, TM_TRIM_PAGES);
		h->trimmed_mark = 1;
	}
	tm_heap_unlock();
	return bytes;
}

static void trim_sleeper(struct tm_heap *h, void *arg)
{
	size_t *bytes = arg;
	uint64_t slices;
	bool pushed = atomic_load_explicit(&h->remote, memory_order_relaxed) != NULL;

	if (atomic_load_explicit(&h->state, memory_order_acquire) != TM_HEAP_OWNED || h->tid == 0 ||
	    (h->span_count < STEAL_WORTH_SPANS && !pushed))
		return;
	if (!asleep(h->tid, &slices))
		return;
	/* Asleep since the last tick, and not trimmed in this sleep. */
	if (slices != h->idle_mark || (slices == h->trimmed_mark && !pushed)) {
		h->idle_mark = slices;
		return;
	}
	/* Its thread may end meanwhile: it first waits for the heap, then orphans it. */
	if (!steal(h, slices))
		return;
	*bytes += tm_trim_heap(h, TM_TRIM_PAGES);
	h->trimmed_mark = slices;
	return_heap(h);
}

size_t tm_trim_heaps(uint64_t now_ms)
{
	static uint64_t last_ms; /* [helper] there is one helper at a time */
	size_t bytes;

	if (now_ms - last_ms < TRIM_PERIOD_MS)
		return 0;
	last_ms = now_ms;
	tm_trim_lock();
	bytes = tm_trim_orphans();
	tm_heap_each(trim_sleeper, &bytes);
	tm_trim_unlock();
	return bytes;
}
