/* SPDX-License-Identifier: MIT */
/*
 * dl: dlopen, dlsym and dlvsym as the program sees them.
 *
 * Both are answered by assembly that ends in a jump to the real function, because these look at
 * their caller's address (RTLD_NEXT, $ORIGIN, RUNPATH). dlopen: RTLD_DEEPBIND is dropped as
 * TIERMALLOC_DEEPBIND says, since such a library would free our blocks with libc's free (H21).
 * dlsym: a name in a registered table is answered by its handler, every other name by the real
 * function. The family has its own table (H92); the CUDA hooks add theirs.
 *
 * No lock, no allocation; any thread, before boot too. dlmopen is left alone.
 */
#ifndef TM_DL_H
#define TM_DL_H

#include "shim/base/attrs.h"

/*
 * What dlsym gives for a name of a table: `found` is the real, non-NULL answer for that handle, and
 * is returned by handlers that have nothing else to say.
 */
typedef void *(*tm_dl_handler)(const char *name, void *found);

struct tm_dl_entry {
	const char *name;
	tm_dl_handler handler;
};

#define TM_DL_ENTRIES 768u

/* Add a table, which must stay. At boot or in a constructor. 0, or -ENOSPC: none of it was added. */
int tm_dl_register(const struct tm_dl_entry *entries, size_t count);

/* Sets tm_root.next_dlsym and next_dlopen; called by boot alone. */
void tm_dl_boot(void);

/* How often RTLD_DEEPBIND was dropped. */
uint64_t tm_dl_dropped(void);

/* Call the real dlsym with a real handle (not RTLD_NEXT or RTLD_DEFAULT: the caller would be us). */
void *tm_dl_real_dlsym(void *handle, const char *name);

/* Asked by the assembly; not for other callers. */
#define TM_DL_PASS ((void *)-1)
void *tm_dl_answer(void *handle, const char *name, const void *caller);
void *tm_dl_answer_version(void *handle, const char *name, const char *version);
int tm_dl_open_flags(const char *file, int flags);
/* The real functions where tm_root has none: before boot, and while libdl is not loaded. 0: none. */
uintptr_t tm_dl_find_dlsym(void);
uintptr_t tm_dl_find_dlopen(void);
uintptr_t tm_dl_find_dlvsym(void);

#endif
