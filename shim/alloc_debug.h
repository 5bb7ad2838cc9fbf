/* SPDX-License-Identifier: MIT */
/*
 * alloc_debug: TIERMALLOC_GUARD, TIERMALLOC_FILL and guard= of rules, forms of the family that find
 * mistakes. Chosen at boot; cost nothing where they are not asked for. They keep the account. With rules
 * that guard, each request asks them, whatever its size; guarded and other blocks live side by side.
 *
 * all: a block has a canary in front, keyed by its address, and one behind. A free looks at both, fills
 * the block and puts it into a quarantine, whose oldest blocks are looked at again, for writes after the
 * free, and freed. Where a pointer's block begins is known from the page map, never from the memory in
 * front of the pointer. sample: see guard_pages.h.
 * No lock: any thread, any signal handler.
 */
#ifndef TM_ALLOC_DEBUG_H
#define TM_ALLOC_DEBUG_H

#include "policies/rules.h"
#include "shim/base/attrs.h"

struct tm_ops;

/* True: blocks need their side entries. Asked once the rules were read. */
bool tm_alloc_debug_is_wanted(void);

/* Whether a rule may ask for this now: what finds mistakes is chosen at boot. */
bool tm_alloc_debug_can(enum tm_rule_guard guard);

void tm_alloc_debug_ops(struct tm_ops *ops);

/* At the end of main: everything in quarantine is looked at and freed. */
void tm_alloc_debug_drain(void);

#endif
