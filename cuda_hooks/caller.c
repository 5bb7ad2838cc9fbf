/* SPDX-License-Identifier: MIT */
#include "cuda_hooks/caller.h"

#include <stdatomic.h>

#include "shim/base/hash.h"
#include "shim/elf.h"
#include "shim/thread.h"
#include "shim/unwind/unwind.h"
#include "shim/unwind/unwind_cfi.h"

#define OBJECTS 32u
#define ASKS_LEAST 32u /* a program that looks up just what it needs asks for fewer names */
#define FRAMES 16u
#define KNOWN_BITS 8u

uint32_t tm_caller_runtimes;
static _Atomic bool stale; /* 1: an object may have been unloaded */

/* [lock] Objects that looked names up, and how often. */
static struct object {
	uintptr_t begin, end; /* 0: unused */
	uint32_t asks;
	bool program;
} objects[OBJECTS];

/*
 * [lock] Cached results. An entry holds as long as the stack word that held the found return
 * address still does. Nothing is cached on processors that return through a register.
 */
static struct known {
	uintptr_t site, frame; /* 0: unused */
	uintptr_t slot, found;
} known[1u << KNOWN_BITS];

static struct tm_unwind_room room; /* [lock] */
static uintptr_t libc_begin;       /* [lock] 0: not found yet */

static bool is_program(const struct tm_unwind_object *object)
{
	struct tm_elf_object program;
	return tm_elf_program(&program) &&
	       (uintptr_t)program.dynamic - object->begin < object->end - object->begin;
}

static unsigned object_of(uintptr_t address)
{
	unsigned i;
	for (i = 0; i < OBJECTS && objects[i].begin != 0; i++)
		if (address - objects[i].begin < objects[i].end - objects[i].begin)
			break;
	return i;
}

/* Drops objects that are no longer loaded, and all cached results. */
static TM_COLD void look_around(void)
{
	struct tm_unwind_object object;
	unsigned i = 0, last;
	__builtin_memset(known, 0, sizeof(known));
	tm_caller_runtimes = 0;
	while (i < OBJECTS && objects[i].begin != 0) {
		if (tm_unwind_object(objects[i].begin, &object) &&
		    object.begin == objects[i].begin && object.end == objects[i].end) {
			tm_caller_runtimes += objects[i].asks == ASKS_LEAST && !objects[i].program;
			i++;
			continue;
		}
		for (last = i; last + 1 < OBJECTS && objects[last + 1].begin != 0; last++)
			continue;
		objects[i] = objects[last];
		objects[last].begin = 0;
	}
}

/*
 * The driver may close libraries in a call that is made under tm_hooks_lock, so this must not wait
 * for it.
 */
void tm_caller_unloaded(void)
{
	atomic_store_explicit(&stale, true, memory_order_release);
}

static void keep_up(void)
{
	if (TM_UNLIKELY(atomic_load_explicit(&stale, memory_order_relaxed)) &&
	    atomic_exchange_explicit(&stale, false, memory_order_acquire))
		look_around();
}

void tm_caller_asked(uintptr_t caller)
{
	struct tm_unwind_object object;
	unsigned i;
	keep_up();
	i = object_of(caller);
	if (i == OBJECTS)
		return;
	if (objects[i].begin == 0) {
		if (!tm_unwind_object(caller, &object) || object.begin == 0)
			return;
		objects[i] = (struct object){object.begin, object.end, 0, is_program(&object)};
	}
	if (objects[i].asks < ASKS_LEAST && ++objects[i].asks == ASKS_LEAST && !objects[i].program)
		tm_caller_runtimes++;
}

static uintptr_t begin_of_libc(void)
{
	struct tm_unwind_object object;
	struct tm_elf_object libc;
	if (libc_begin == 0 && tm_elf_libc(&libc) &&
	    tm_unwind_object((uintptr_t)libc.dynamic, &object))
		libc_begin = object.begin;
	return libc_begin;
}

/*
 * Whether an address lies in libc, where every thread starts: a walk that arrives there has passed
 * all of the program's code without finding a caller.
 */
static bool is_libc(uintptr_t address)
{
	struct tm_unwind_object object;
	return tm_unwind_object(address, &object) && object.begin == begin_of_libc();
}

/* Walks at most `limit` frames; `regs` then hold the state at the last one. */
static unsigned walk_to(unsigned limit, struct known *k, struct tm_unwind_regs *regs,
			uint64_t *frames)
{
	uintptr_t word = tm_heap_word;
	struct tm_unwind_walk walk = {.room = &room, .return_address = k->site, .frame = k->frame};
	if (!tm_heap_word_is_none(word))
		walk.stack_top = tm_heap_of_word(word)->stack_top;
	tm_unwind_here(regs);
	tm_unwind_walk(&walk, regs, frames, limit);
	return walk.count;
}

static TM_NOINLINE uintptr_t look(struct known *k, unsigned object)
{
	uint64_t frames[FRAMES];
	struct tm_unwind_regs regs;
	unsigned i, count = walk_to(FRAMES, k, &regs, frames);
	for (i = 1; i < count && object_of(frames[i]) == object; i++)
		continue;
	if (i >= count || is_libc(frames[i]))
		return k->site;
	k->found = frames[i];
	/*
	 * Walk again up to that frame: its stack pointer is just above the word that holds the
	 * return address.
	 */
#if defined(__x86_64__)
	if (walk_to(i, k, &regs, frames) == i && regs.pc == k->found)
		k->slot = regs.r[7] - sizeof(uintptr_t);
#endif
	return k->found;
}

/*
 * Whether a cached result still holds. The page of the frame is mapped; any other page is checked
 * first, since it may have been unmapped with a stack.
 */
static bool holds(const struct known *k)
{
	if (k->slot == 0 || ((k->slot ^ k->frame) >= TM_PAGE_BYTES &&
			     !tm_unwind_readable(k->slot, sizeof(uintptr_t))))
		return false;
	return *(const uintptr_t *)k->slot == k->found;
}

uintptr_t tm_caller_find(uintptr_t site, uintptr_t frame)
{
	struct known *k = &known[tm_hash_slot(site ^ frame << 20, KNOWN_BITS)];
	unsigned object;
	keep_up();
	if (k->site == site && k->frame == frame && holds(k))
		return k->found;
	object = object_of(site);
	if (object == OBJECTS || objects[object].begin == 0 || objects[object].asks < ASKS_LEAST ||
	    objects[object].program)
		return site;
	*k = (struct known){site, frame, 0, 0};
	return look(k, object);
}
