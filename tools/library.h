/* SPDX-License-Identifier: MIT */
/*
 * library: where the preload library is, and LD_PRELOAD with it. The library is looked for where the
 * command was installed or built, never through the caller's environment.
 */
#ifndef TM_TOOLS_LIBRARY_H
#define TM_TOOLS_LIBRARY_H

#include "shim/base/attrs.h"

#define TM_LIBRARY_NAME "libtiermalloc.so"

/* Absolute path, 0 or -errno (-ENOENT: neither ../lib nor the command's own folder has it). */
int tm_library_find(char *buf, size_t size);

/* Why the loader could not take this path out of LD_PRELOAD or load the file; NULL: it can. */
const char *tm_library_obstacle(const char *path);

/*
 * The library in front of what "old" (may be NULL) holds, without other copies of it. Allocated; NULL
 * when there is no memory.
 */
char *tm_library_preload(const char *path, const char *old);

/* Name of a known allocator in a path or file name ("libjemalloc"), or NULL. */
const char *tm_library_rival(const char *path);

#endif
