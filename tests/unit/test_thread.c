/* SPDX-License-Identifier: MIT */
/* thread: what a thread's word says of its heap. */
#include <criterion/criterion.h>

#include "shim/heap/emergency.h"
#include "shim/heap/heap.h"
#include "shim/thread.h"
#include "tests/unit/engine.h"

enum { BYTES = 48 };

static struct tm_heap *need_heap(void)
{
	need_engine();
	tm_root.ops.free(tm_root.ops.malloc(BYTES));
	cr_assert_not(tm_heap_word_is_none(tm_heap_word));
	return tm_heap_of_word(tm_heap_word);
}

/* As in a signal handler: the thread's own bit stands, whatever the helper does meanwhile. */
Test(thread, a_busy_heap_is_not_entered)
{
	struct tm_heap *h = need_heap();
	static const uintptr_t bits[] = {TM_HEAP_BUSY, TM_HEAP_BUSY | TM_HEAP_STOLEN};

	for (size_t i = 0; i < TM_ARRAY_LEN(bits); i++) {
		uintptr_t word = (uintptr_t)h | bits[i];

		tm_heap_word = word;
		void *p = tm_root.ops.malloc(BYTES);
		uintptr_t after = tm_heap_word;
		tm_heap_word = (uintptr_t)h;
		cr_assert(tm_emergency_owns(p));
		cr_assert_eq(after, word);
		tm_root.ops.free(p);
	}
}

/*
 * The owner woke while the helper had its heap, loaded the word, and stored it back after the helper had
 * returned the heap: the word says stolen, nobody has it.
 */
Test(thread, a_heap_that_is_back_is_entered)
{
	struct tm_heap *h = need_heap();

	for (size_t size = BYTES; size < 100000; size *= 3) {
		tm_heap_word = (uintptr_t)h | TM_HEAP_STOLEN;
		void *p = tm_root.ops.malloc(size);
		cr_assert_not(tm_emergency_owns(p));
		cr_assert_eq(tm_heap_word, (uintptr_t)h);
		tm_heap_word = (uintptr_t)h | TM_HEAP_STOLEN;
		tm_root.ops.free(p);
	}
	tm_heap_word = (uintptr_t)h;
}

/* Of a handler that jumped out while the helper tried to have the heap: the heap that is given up is this one. */
Test(thread, a_busy_heap_is_deserted_also_where_it_was_to_be_stolen)
{
	struct tm_heap *h = need_heap();

	tm_heap_word = (uintptr_t)h | TM_HEAP_BUSY | TM_HEAP_STOLEN;
	cr_assert(tm_thread_desert());
	cr_assert(tm_heap_word_is_none(tm_heap_word));
	cr_assert_eq(atomic_load(&h->state), TM_HEAP_UNUSED);
	void *p = tm_root.ops.malloc(BYTES);
	cr_assert_not(tm_emergency_owns(p));
	cr_assert_neq(tm_heap_of_word(tm_heap_word), h);
	tm_root.ops.free(p);
}
