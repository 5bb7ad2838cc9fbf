/* SPDX-License-Identifier: MIT */
/*
 * dl: dlopen, dlsym and dlvsym as the program sees them.
 *
 * The exported functions are assembly that ends in a tail jump to the real function, because the
 * real one looks at its caller's address (RTLD_NEXT, $ORIGIN, RUNPATH). dlopen: removes
 * RTLD_DEEPBIND as TIERMALLOC_DEEPBIND says, because such a library would free our blocks with
 * libc's free (H21). dlsym: names in a registered table are answered by their handler, all others
 * by the real function. The malloc family has a table of its own (H92); the CUDA hooks add theirs.
 *
 * No lock, no allocation; any thread, also before boot. dlmopen is not interposed.
 */
#ifndef TM_DL_H
#define TM_DL_H

#include "shim/base/attrs.h"

/*
 * Result of dlsym for a name of a table. found: the real function's answer for that handle, not
 * NULL; a handler that doesn't want to replace it returns it.
 */
typedef void *(*tm_dl_handler)(const char *name, void *found);

struct tm_dl_entry {
	const char *name;
	tm_dl_handler handler;
};

#define TM_DL_ENTRIES 768u

/*
 * Adds a table, which is referred to and must live for ever. At boot or in a constructor. 0, or
 * -ENOSPC: nothing was added.
 */
int tm_dl_register(const struct tm_dl_entry *entries, size_t count);

/* Sets tm_root.next_dlsym and next_dlopen; called by boot alone. */
void tm_dl_boot(void);

/* How often RTLD_DEEPBIND was removed. */
uint64_t tm_dl_dropped(void);

/*
 * Calls the real dlsym. Not with RTLD_NEXT or RTLD_DEFAULT: it would take this library for the
 * caller.
 */
void *tm_dl_real_dlsym(void *handle, const char *name);

/* For the assembly only. TM_DL_PASS: jump to the real function. */
#define TM_DL_PASS ((void *)-1)
void *tm_dl_answer(void *handle, const char *name, const void *caller);
void *tm_dl_answer_version(void *handle, const char *name, const char *version);
int tm_dl_open_flags(const char *file, int flags);
/*
 * Look up the real functions while tm_root has none: before boot, or libdl isn't loaded. 0: none.
 */
uintptr_t tm_dl_find_dlsym(void);
uintptr_t tm_dl_find_dlopen(void);
uintptr_t tm_dl_find_dlvsym(void);

#endif
