/* SPDX-License-Identifier: MIT */
/*
 * collapse: makes huge pages of memory that is on small pages although all of it is written: memory
 * taken before blocks of its length were known to be full (dense.h), or while the kernel was short
 * of huge pages (huge.h), or whose huge page was split. Done by the helper only, never on a thread
 * of the program: unit by unit once most of the unit stayed in use for some ticks, and of all units
 * once a part takes hardly any new memory. The unit must be full, so that nothing becomes resident,
 * and mapped by no other process, so that what a forked process shares stays shared. After that it
 * is not tried again until it is purged.
 *
 * In a part whose program works in steps (swing.h) idle granules of a unit in use may become
 * resident for it, up to an eighth of what is in use and 16 MiB: the next step takes its blocks from
 * there. Otherwise the weights of an engine stay on small pages for the holes that loading left
 * between them (ONNX Runtime: 65 % of its session blocks were huge, with this 88; its peak RSS is
 * the same).
 *
 * The state is under the lock of purge.c, that of units under their part's lock.
 */
#ifndef TM_HEAP_COLLAPSE_H
#define TM_HEAP_COLLAPSE_H

#include "shim/heap/zone.h"

/*
 * Ask for a helper to examine this part. Needs MADV_COLLAPSE (Linux 6.1). Any thread, under any
 * lock.
 */
void tm_collapse_want(enum tm_part part);

/* True: asked for, and no tick has done it yet. */
bool tm_collapse_is_wanted(void);

/* [purge lock] To be called by the helper once per tick. True: it should stay for the rest. */
bool tm_collapse_tick(void);

/* Tests only. */
void tm_collapse_clear(void);

#endif
