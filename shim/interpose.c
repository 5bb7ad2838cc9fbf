/* SPDX-License-Identifier: MIT */
/*
 * interpose: the C functions that programs call instead of libc's. A line or two each and no logic:
 * a jump through tm_root.ops, or to family.c. What a jump leads to sees the program's own return
 * address, so nothing here may keep a frame on the way to an allocation; a lint reads the machine
 * code. base/symbols.def lists them all; cxx.c has the C++ operators.
 */
#include <malloc.h>
#include <stdlib.h>

#include "shim/base/attrs.h"
#include "shim/boot.h"
#include "shim/family.h"

/* Not declared by libc's headers, or only by some. */
void cfree(void *p);
void free_sized(void *p, size_t size);
void free_aligned_sized(void *p, size_t align, size_t size);
void *__libc_malloc(size_t size);
void __libc_free(void *p);
void __libc_cfree(void *p);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_reallocarray(void *p, size_t n, size_t size);
void *__libc_memalign(size_t align, size_t size);
void *__libc_valloc(size_t size);
void *__libc_pvalloc(size_t size);
int __libc_mallopt(int parameter, int value);
struct mallinfo __libc_mallinfo(void);
int __posix_memalign(void **ret_p, size_t align, size_t size);
/* The structure's name is glibc 2.33's; its shape is ours. */
#define mallinfo2 tm_interpose_mallinfo2
struct tm_family_info mallinfo2(void) __asm__("mallinfo2");

/*
 * Our own entries by address. A tool that replaces entries (valgrind) knows not all names of the family:
 * the others come through one that it knows, or its blocks would meet ours.
 */
#define ENTRY(type, name, parameters)                                                              \
	TM_HIDDEN type tm_entry_##name parameters;                                                 \
	__asm__(".hidden tm_entry_" #name "\n\t.set tm_entry_" #name ", " #name);
ENTRY(void *, malloc, (size_t size))
ENTRY(void, free, (void *p))
ENTRY(void *, calloc, (size_t n, size_t size))
ENTRY(void *, realloc, (void *p, size_t size))
ENTRY(void *, memalign, (size_t align, size_t size))
ENTRY(void *, valloc, (size_t size))
ENTRY(int, posix_memalign, (void **ret_p, size_t align, size_t size))

TM_EXPORT void *malloc(size_t size)
{
	return tm_root.ops.malloc(size);
}

TM_EXPORT void free(void *p)
{
	tm_root.ops.free(p);
}

TM_EXPORT void *calloc(size_t n, size_t size)
{
	return tm_root.ops.calloc(n, size);
}

TM_EXPORT void *realloc(void *p, size_t size)
{
	return tm_root.ops.realloc(p, size);
}

TM_EXPORT void *reallocarray(void *p, size_t n, size_t size)
{
	return tm_family_reallocarray(p, n, size, tm_entry_realloc);
}

TM_EXPORT void *memalign(size_t align, size_t size)
{
	return tm_family_memalign(align, size);
}

TM_EXPORT void *aligned_alloc(size_t align, size_t size)
{
	return tm_family_aligned_alloc(align, size);
}

TM_EXPORT int posix_memalign(void **ret_p, size_t align, size_t size)
{
	return tm_root.ops.posix_memalign(ret_p, align, size);
}

TM_EXPORT void *valloc(size_t size)
{
	return tm_family_valloc(size);
}

TM_EXPORT void *pvalloc(size_t size)
{
	return tm_family_pvalloc(size, tm_entry_memalign);
}

TM_EXPORT void cfree(void *p)
{
	tm_root.ops.free(p);
}

TM_EXPORT void free_sized(void *p, size_t size)
{
	tm_root.ops.op_delete_sized(p, size);
}

TM_EXPORT void free_aligned_sized(void *p, size_t align, size_t size)
{
	(void)align;
	(void)size;
	tm_root.ops.op_delete(p);
}

TM_EXPORT size_t malloc_usable_size(void *p)
{
	return tm_root.ops.usable_size(p);
}

TM_EXPORT int malloc_trim(size_t pad)
{
	return tm_family_malloc_trim(pad);
}

TM_EXPORT int mallopt(int parameter, int value)
{
	return tm_family_mallopt(parameter, value);
}

TM_EXPORT struct mallinfo mallinfo(void)
{
	return tm_family_mallinfo();
}

TM_EXPORT struct tm_family_info mallinfo2(void)
{
	return tm_family_mallinfo2();
}

TM_EXPORT int malloc_info(int options, FILE *stream)
{
	return tm_family_malloc_info(options, stream);
}

TM_EXPORT void malloc_stats(void)
{
	tm_family_malloc_stats();
}

/* --- the names by which glibc offers its own -------------------------------------------------- */

TM_EXPORT void *__libc_malloc(size_t size)
{
	return tm_entry_malloc(size);
}

TM_EXPORT void __libc_free(void *p)
{
	tm_entry_free(p);
}

TM_EXPORT void __libc_cfree(void *p)
{
	tm_entry_free(p);
}

TM_EXPORT void *__libc_calloc(size_t n, size_t size)
{
	return tm_entry_calloc(n, size);
}

TM_EXPORT void *__libc_realloc(void *p, size_t size)
{
	return tm_entry_realloc(p, size);
}

TM_EXPORT void *__libc_reallocarray(void *p, size_t n, size_t size)
{
	return tm_family_reallocarray(p, n, size, tm_entry_realloc);
}

TM_EXPORT void *__libc_memalign(size_t align, size_t size)
{
	return tm_entry_memalign(align, size);
}

TM_EXPORT void *__libc_valloc(size_t size)
{
	return tm_entry_valloc(size);
}

TM_EXPORT void *__libc_pvalloc(size_t size)
{
	return tm_family_pvalloc(size, tm_entry_memalign);
}

TM_EXPORT int __libc_mallopt(int parameter, int value)
{
	return tm_family_mallopt(parameter, value);
}

TM_EXPORT struct mallinfo __libc_mallinfo(void)
{
	return tm_family_mallinfo();
}

TM_EXPORT int __posix_memalign(void **ret_p, size_t align, size_t size)
{
	return tm_entry_posix_memalign(ret_p, align, size);
}
