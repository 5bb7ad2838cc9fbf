/* SPDX-License-Identifier: MIT */
/*
 * limit: free memory goes back before the control group's limit is met, beyond which the kernel
 * kills (H60). Consulted where memory grows: a new span, a block. Costs a compare where there is no
 * limit. The limit is read once, when the process has come to 8 MiB, and not under a filter (H68).
 */
#ifndef TM_HEAP_LIMIT_H
#define TM_HEAP_LIMIT_H

#include "shim/base/attrs.h"

/*
 * True: with so many bytes more, memory comes near the limit, and the caller should give back what is
 * free. Says so again only when memory has grown further. Any thread; no lock may be held.
 */
bool tm_limit_is_near(size_t more_bytes);

/* After giving back. */
void tm_limit_settle(void);

/* True: it is known that no filter punishes unusual system calls of this process. */
bool tm_limit_may_look(void);

/* A filter is coming: no file is read any more. */
void tm_limit_read_nothing(void);

#endif
