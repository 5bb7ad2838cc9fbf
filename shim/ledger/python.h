/* SPDX-License-Identifier: MIT */
/*
 * python: call sites of Python programs (TIERMALLOC_PYTHON=on, CPython 3.11 to 3.13 of 64 bits).
 *
 * An interpreter allocates all objects by a few calls of malloc at few stack heights, so a C call
 * site alone says little about a leak. This module replaces the site by a word that stands for the
 * C call and the running line of Python code, read from the thread's own interpreter frames. The
 * account treats that word as a return address. The captured stack has the C frames followed by the
 * Python frames (ledger_format.h: TM_LEDGER_PYTHON_*).
 *
 * Modifies nothing of the interpreter and takes none of its locks: a thread reads only its own
 * state and calls PyGILState_GetThisThreadState and PyCode_Addr2Line, which only read. Any thread,
 * whether it holds its heap or not. Blocks of the C++ operators and the aligned functions keep
 * their C site.
 */
#ifndef TM_PYTHON_H
#define TM_PYTHON_H

#include "shim/base/attrs.h"
#include "shim/heap/store.h"

struct tm_ops;

/* At boot, before the ledger begins. */
void tm_python_init(void);

/* At boot: replaces malloc, calloc and realloc in ops if enabled and the program is a CPython. */
void tm_python_ops(struct tm_ops *ops);

/*
 * The site with its Python line, or `site` if disabled or no Python code runs. For other modules
 * that replace malloc.
 */
struct tm_site tm_python_site(struct tm_site site, size_t bytes);

/* The C return address of a site, whether it has a Python line or not. */
uintptr_t tm_python_return_address(uintptr_t site);

/* Whether the site has a Python line; if so, tm_python_frames() gives the Python callers. */
bool tm_python_is_site(uintptr_t site);

/*
 * Fills frames[0..room) with the Python functions active in this thread, innermost first, as words
 * of the ledger's pool of frames. Valid only while an allocation of a Python site is being served.
 * Returns the number filled.
 */
unsigned tm_python_frames(uint64_t *frames, unsigned room);

/* Fills the header's fields about the interpreter; when a ledger begins. */
struct tm_ledger_header;
void tm_python_describe(struct tm_ledger_header *header);

/* In a forked child: its new ledger has no Python functions yet. */
void tm_python_fork_child(void);

#endif
