/* SPDX-License-Identifier: MIT */
/*
 * alloc_align: TIERMALLOC_ALIGN above 16: every block at least that aligned, for programs that
 * assume it and to show that they do (H32). Chosen at boot; costs nothing where it is not asked for.
 */
#include <errno.h>
#include <string.h>

#include "shim/alloc.h"
#include "shim/boot.h"

static size_t at_least(size_t align)
{
	size_t wanted = tm_root.options.align_bytes;

	return align > wanted ? align : wanted;
}

static void *align_malloc(size_t size)
{
	return tm_alloc_aligned(tm_root.options.align_bytes, size);
}

static void *align_calloc(size_t n, size_t size)
{
	size_t bytes;

	if (!tm_alloc_product(n, size, &bytes))
		return NULL;
	void *p = align_malloc(bytes);
	return p == NULL ? NULL : memset(p, 0, bytes);
}

static void *align_realloc(void *p, size_t size)
{
	size_t old_bytes;
	void *fresh;

	if (p == NULL)
		return align_malloc(size);
	if (size == 0) {
		tm_alloc_free(p);
		return NULL;
	}
	old_bytes = tm_alloc_usable(p);
	if (size <= old_bytes && size > old_bytes / 2)
		return p;
	fresh = align_malloc(size);
	if (fresh == NULL)
		return NULL;
	memcpy(fresh, p, old_bytes < size ? old_bytes : size);
	tm_alloc_free(p);
	return fresh;
}

static void *align_memalign(size_t align, size_t size)
{
	return tm_alloc_aligned(at_least(align), size);
}

static int align_posix_memalign(void **ret_p, size_t align, size_t size)
{
	if (align < sizeof(void *) || (align & (align - 1)) != 0)
		return EINVAL;
	return tm_alloc_posix_memalign(ret_p, at_least(align), size);
}

static void *align_new(size_t size)
{
	return tm_alloc_new_aligned(size, tm_root.options.align_bytes);
}

static void *align_new_aligned(size_t size, size_t align)
{
	return tm_alloc_new_aligned(size, at_least(align));
}

static void *align_new_nothrow(size_t size)
{
	return tm_alloc_new_aligned_nothrow(size, tm_root.options.align_bytes);
}

static void *align_new_aligned_nothrow(size_t size, size_t align)
{
	return tm_alloc_new_aligned_nothrow(size, at_least(align));
}

/* What was asked for cannot be told from what was given. */
static void align_delete_sized(void *p, size_t size)
{
	(void)size;
	tm_alloc_free(p);
}

void tm_alloc_align_ops(struct tm_ops *ops)
{
	ops->op_delete_sized = align_delete_sized;
	ops->malloc = align_malloc;
	ops->calloc = align_calloc;
	ops->realloc = align_realloc;
	ops->memalign = align_memalign;
	ops->posix_memalign = align_posix_memalign;
	ops->op_new = align_new;
	ops->op_new_aligned = align_new_aligned;
	ops->op_new_nothrow = align_new_nothrow;
	ops->op_new_aligned_nothrow = align_new_aligned_nothrow;
}
