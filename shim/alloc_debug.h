/* SPDX-License-Identifier: MIT */
/*
 * alloc_debug: variants of the malloc family that detect heap errors: TIERMALLOC_GUARD,
 * TIERMALLOC_FILL and the guard= action of rules. Chosen at boot, so that a process without them
 * pays nothing. They keep the account. If any rule has guard=, every request of any size consults
 * the rules; guarded and unguarded blocks coexist.
 *
 * guard=all: each block has a canary before it, keyed by its address, and one behind it. free
 * checks both, fills the block and puts it into a quarantine (a FIFO). A block that leaves the
 * quarantine is checked for writes after the free and then really freed. The start of a block is
 * found by the page map, never from memory before the pointer, which may be corrupt. guard=sample:
 * see guard_pages.h. Takes no lock; may be called by any thread and any signal handler.
 */
#ifndef TM_ALLOC_DEBUG_H
#define TM_ALLOC_DEBUG_H

#include "policies/rules.h"
#include "shim/base/attrs.h"

struct tm_ops;

/*
 * Whether any of this is in use, in which case blocks need their side entries. Valid once the rules
 * have been read.
 */
bool tm_alloc_debug_is_wanted(void);

/*
 * Whether a rule added now may use this guard: only if the guard variants were installed at boot.
 */
bool tm_alloc_debug_can(enum tm_rule_guard guard);

void tm_alloc_debug_ops(struct tm_ops *ops);

/* At the end of main: checks and frees every block in quarantine. */
void tm_alloc_debug_drain(void);

#endif
