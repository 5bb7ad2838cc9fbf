/* SPDX-License-Identifier: MIT */
/*
 * core_stub: stands in for the engine until it is linked: every definition is weak. Boot is refused,
 * so that the library is passive and libc serves.
 */
#include "shim/core_stub.h"

#include <errno.h>

#include "shim/boot.h"
#include "shim/report.h"

#define WEAK __attribute__((weak))

WEAK int tm_core_boot(void)
{
	return -ENOSYS;
}

WEAK void tm_alloc_ops(struct tm_ops *ops)
{
	(void)ops;
}

WEAK int tm_account_snapshot(struct tm_snapshot *ret_snapshot)
{
	(void)ret_snapshot;
	return -ENOSYS;
}

WEAK void tm_helper_stop(void)
{
}

WEAK void *tm_alloc_malloc(size_t size)
{
	(void)size;
	return NULL;
}

WEAK void tm_alloc_free(void *p)
{
	(void)p;
}

WEAK void *tm_alloc_calloc(size_t n, size_t size)
{
	(void)n;
	(void)size;
	return NULL;
}

WEAK void *tm_alloc_realloc(void *p, size_t size)
{
	(void)p;
	(void)size;
	return NULL;
}

WEAK void *tm_alloc_aligned(size_t align, size_t size)
{
	(void)align;
	(void)size;
	return NULL;
}

WEAK int tm_alloc_posix_memalign(void **ret_p, size_t align, size_t size)
{
	(void)ret_p;
	(void)align;
	(void)size;
	return ENOMEM;
}

WEAK size_t tm_alloc_usable(void *p)
{
	(void)p;
	return 0;
}

WEAK void *tm_alloc_new(size_t size)
{
	return tm_alloc_malloc(size);
}

WEAK void *tm_alloc_new_aligned(size_t size, size_t align)
{
	return tm_alloc_aligned(align, size);
}

WEAK void *tm_alloc_new_nothrow(size_t size)
{
	return tm_alloc_malloc(size);
}

WEAK void *tm_alloc_new_aligned_nothrow(size_t size, size_t align)
{
	return tm_alloc_aligned(align, size);
}

WEAK void tm_alloc_free_sized(void *p, size_t size)
{
	(void)size;
	tm_alloc_free(p);
}

WEAK size_t tm_alloc_trim(void)
{
	return 0;
}
