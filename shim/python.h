/* SPDX-License-Identifier: MIT */
/*
 * python: call sites of Python programs (TIERMALLOC_PYTHON=on, CPython 3.11 to 3.13 of 64 bits).
 *
 * All objects of an interpreter come from one call of malloc in it, at few heights: without more a
 * leak has its C function only. Here a site is a word that stands for the C call and the line of the
 * Python function that runs, read from the thread's own interpreter frames; the account counts it as
 * any other return address. The captured stack has the C frames and behind them the Python ones
 * (ledger_format.h: TM_LEDGER_PYTHON_*).
 *
 * Nothing of Python's is changed and none of its locks is taken: a thread reads what is its own and
 * calls PyGILState_GetThisThreadState and PyCode_Addr2Line, which only read. Any thread, with its heap
 * held or not. Blocks of C++ operators and of the aligned functions keep their C site.
 */
#ifndef TM_PYTHON_H
#define TM_PYTHON_H

#include "shim/base/attrs.h"
#include "shim/heap/store.h"

struct tm_ops;

/* At boot, before the ledger begins. */
void tm_python_init(void);

/* At boot: takes the place of malloc, calloc, realloc if wanted and the program is a Python. */
void tm_python_ops(struct tm_ops *ops);

/* The site with its line, where that is wanted and there is one; for others that take malloc's place. */
struct tm_site tm_python_site(struct tm_site site, size_t bytes);

/* The return address that a site stands for. */
uintptr_t tm_python_return_address(uintptr_t site);

/* True: the site has a Python line, tm_python_frames() gives its callers. */
bool tm_python_is_site(uintptr_t site);

/*
 * The Python functions that run in this thread, innermost first, as words of the ledger's pool of
 * frames. While the allocation of such a site is served. Returns how many of "room" were filled.
 */
unsigned tm_python_frames(uint64_t *frames, unsigned room);

/* What the ledger's header says of the interpreter; at its begin. */
struct tm_ledger_header;
void tm_python_describe(struct tm_ledger_header *header);

/* The child's ledger has no functions yet. */
void tm_python_fork_child(void);

#endif
