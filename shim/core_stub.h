/* SPDX-License-Identifier: MIT */
/*
 * core_stub: what the border of the library asks of the engine and of its helper, as far as these
 * have no header yet.
 */
#ifndef TM_CORE_STUB_H
#define TM_CORE_STUB_H

#include "shim/base/attrs.h"

void *tm_alloc_malloc(size_t size);
void tm_alloc_free(void *p);
void *tm_alloc_calloc(size_t n, size_t size);
void *tm_alloc_realloc(void *p, size_t size);
void *tm_alloc_aligned(size_t align, size_t size);
int tm_alloc_posix_memalign(void **ret_p, size_t align, size_t size);
size_t tm_alloc_usable(void *p);
void *tm_alloc_new(size_t size);
void *tm_alloc_new_aligned(size_t size, size_t align);
void *tm_alloc_new_nothrow(size_t size);
void *tm_alloc_new_aligned_nothrow(size_t size, size_t align);
void tm_alloc_free_sized(void *p, size_t size);
size_t tm_alloc_trim(void);

void tm_helper_stop(void);

#endif
