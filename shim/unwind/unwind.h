/* SPDX-License-Identifier: MIT */
/*
 * unwind: collects the return addresses of a call stack, by each object's call frame information
 * (.eh_frame with its sorted index), else by frame pointers.
 *
 * Takes no lock, allocates nothing, and calls nothing of the loader but _dl_find_object, which is
 * lock-free too (glibc 2.35; before: reads /proc/self/maps). No unwinder library is linked, so the
 * program's exception handling is unaffected. Any thread, any signal handler. A small table caches
 * the decoded unwind row of each program counter: later walks cost about 20 instructions a frame.
 *
 * Reads words only in the thread's own stack, or after the kernel has confirmed that they are
 * readable. A walk ends at the first frame that it cannot decode and says so (truncated).
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
	uint64_t r[TM_UNWIND_REGS]; /* by DWARF number; only callee-saved ones are valid */
	uint64_t pc;
};

/* unwind_*.S: the caller's registers as after the return of this call. */
void tm_unwind_here(struct tm_unwind_regs *ret_regs);

struct tm_unwind_object {
	uintptr_t begin, end; /* of its mapping; 0: no known object */
	const void *link_map; /* NULL: unknown */
	const void *eh_frame; /* sorted index (PT_GNU_EH_FRAME); NULL: none */
};

/* The loaded object that holds an address. False: none. */
bool tm_unwind_object(uintptr_t pc, struct tm_unwind_object *ret_object);
/* The same by /proc/self/maps; for a libc without _dl_find_object, and for tests. */
bool tm_unwind_object_by_maps(uintptr_t pc, struct tm_unwind_object *ret_object);

/* Callback for each program counter that was not yet in the table; may be NULL. */
typedef void (*tm_unwind_seen)(uintptr_t pc, const struct tm_unwind_object *object);

struct tm_unwind_room; /* unwind_cfi.h: a walk's work space, too large for small stacks (H26) */

struct tm_unwind_walk {
	struct tm_unwind_room *room; /* in */
	uintptr_t return_address;    /* in: frame 0; the allocator's frames below it are left out */
	uintptr_t frame;             /* in: stack pointer after that return */
	uintptr_t stack_top;         /* in: end of the thread's own stack; 0: unknown */
	tm_unwind_seen seen;         /* in */
	unsigned count;              /* out: frames stored */
	bool truncated;              /* out: it ended before the outermost frame */
	bool by_frames;              /* out: frame pointers were used for some frame */
};

/*
 * Fills frames[0..limit) and walk->count; changes *regs. If unwinding fails, only frame 0 is
 * stored.
 */
void tm_unwind_walk(struct tm_unwind_walk *walk, struct tm_unwind_regs *regs, uint64_t *frames,
		    unsigned limit);

/* After objects were loaded or unloaded: empties the table. */
void tm_unwind_forget(void);

/* Whether [address, address + bytes) is readable. */
bool tm_unwind_readable(uintptr_t address, size_t bytes);

/* The program headers of the object mapped at `begin`; NULL: not readable. */
const Elf64_Phdr *tm_unwind_headers(uintptr_t begin, unsigned *ret_count);

#endif
