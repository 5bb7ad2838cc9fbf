/* SPDX-License-Identifier: MIT */
/*
 * library: finds the preload library and composes LD_PRELOAD. Searches where the command was
 * installed or built, never through the caller's environment.
 */
#ifndef TM_TOOLS_LIBRARY_H
#define TM_TOOLS_LIBRARY_H

#include "shim/base/attrs.h"

#define TM_LIBRARY_NAME "libtiermalloc.so"

/*
 * Writes the absolute path. Returns 0 or -errno (-ENOENT: neither ../lib nor the command's own
 * folder has it).
 */
int tm_library_find(char *buf, size_t size);

/* Why the loader could not load this path from LD_PRELOAD; NULL: it can. */
const char *tm_library_obstacle(const char *path);

/*
 * LD_PRELOAD value with the library before the entries of "old" (may be NULL), without other copies
 * of it. Allocated; NULL without memory.
 */
char *tm_library_preload(const char *path, const char *old);

/* Name of another allocator that a path or file name contains ("libjemalloc"), or NULL. */
const char *tm_library_rival(const char *path);

#endif
