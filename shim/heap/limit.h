/* SPDX-License-Identifier: MIT */
/*
 * limit: has free memory given back before the control group's limit is reached, beyond which the
 * kernel kills (H60). Asked where memory grows: for a new span or block. Costs a compare where
 * there is no limit. The limit is read once, when the process has grown to 8 MiB, and not under a
 * system call filter (H68).
 */
#ifndef TM_HEAP_LIMIT_H
#define TM_HEAP_LIMIT_H

#include "shim/base/attrs.h"

/*
 * True: with more_bytes more the process comes near the limit, so the caller should give free
 * memory back and then call tm_limit_settle. True again only after further growth. Any thread; the
 * caller may hold no lock, since files may be read.
 */
bool tm_limit_is_near(size_t more_bytes);

/* To be called after free memory was given back: sets when the next call says true. */
void tm_limit_settle(void);

/* True: this process is known to have no system call filter that punishes unusual calls. */
bool tm_limit_may_look(void);

/* A filter is about to be installed: read no file from now on. */
void tm_limit_read_nothing(void);

#endif
