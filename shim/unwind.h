/* SPDX-License-Identifier: MIT */
/*
 * unwind: the return addresses above a frame, by the call frame information that every object of the
 * program carries (.eh_frame with its sorted index), else by frame pointers.
 *
 * Takes no lock, allocates nothing, calls nothing of the loader but _dl_find_object, which takes no
 * lock either (glibc 2.35; before: /proc/self/maps). No unwinder is linked, so exceptions of the
 * program stay its own. Any thread, any signal handler. What a program counter's row of the frame
 * information says is kept in a small table, so that later walks cost about 20 instructions a frame.
 *
 * A word of the stack is read only inside the thread's own stack or where the kernel says that it can
 * be. The walk ends at the first frame it does not understand and says so (truncated).
 */
#ifndef TM_UNWIND_H
#define TM_UNWIND_H

#include <elf.h>

#include "shim/base/attrs.h"

#if defined(__x86_64__)
#define TM_UNWIND_REGS 17 /* 16: the return address */
#elif defined(__aarch64__)
#define TM_UNWIND_REGS 32 /* 30: link register, 31: stack pointer */
#endif

struct tm_unwind_regs {
	uint64_t r[TM_UNWIND_REGS]; /* by the ABI's numbers; those a call keeps are valid */
	uint64_t pc;
};

/* unwind_*.S: the registers as they are in the caller, behind the call. */
void tm_unwind_here(struct tm_unwind_regs *ret_regs);

struct tm_unwind_object {
	uintptr_t begin, end; /* of its mapping; 0: none is known there */
	const void *link_map; /* NULL: not known */
	const void *eh_frame; /* its sorted index (PT_GNU_EH_FRAME); NULL: it has none */
};

/* The loaded object that holds an address. False: none. */
bool tm_unwind_object(uintptr_t pc, struct tm_unwind_object *ret_object);
/* The same, by /proc/self/maps; for systems without _dl_find_object, and tests. */
bool tm_unwind_object_by_maps(uintptr_t pc, struct tm_unwind_object *ret_object);

/* [pc is new] Called once for each program counter that the table did not know; may be NULL. */
typedef void (*tm_unwind_seen)(uintptr_t pc, const struct tm_unwind_object *object);

struct tm_unwind_room; /* unwind_cfi.h: what a walk works in, too large for a small stack (H26) */

struct tm_unwind_walk {
	struct tm_unwind_room *room; /* in */
	uintptr_t return_address; /* in: frame 0; frames below it are the allocator's, left out */
	uintptr_t frame;          /* in: the stack pointer behind that return */
	uintptr_t stack_top;      /* in: end of the thread's own stack; 0: not known */
	tm_unwind_seen seen;      /* in */
	unsigned count;           /* out: frames stored */
	bool truncated;           /* out: it ended before the stack did */
	bool by_frames;           /* out: a frame pointer was needed somewhere */
};

/* Fills frames[0..limit); regs are changed. Without success frame 0 alone is there. */
void tm_unwind_walk(struct tm_unwind_walk *walk, struct tm_unwind_regs *regs, uint64_t *frames,
		    unsigned limit);

/* Objects went or came: nothing that was kept holds any more. */
void tm_unwind_forget(void);

/* A word can be read there. */
bool tm_unwind_readable(uintptr_t address, size_t bytes);

/* The program headers of the object that is mapped from there on; NULL: none can be read. */
const Elf64_Phdr *tm_unwind_headers(uintptr_t begin, unsigned *ret_count);

#endif
