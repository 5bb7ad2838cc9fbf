/* SPDX-License-Identifier: MIT */
/*
 * H30: shim/base/symbols.def says what the library interposes. Every name of it is called with edge
 * sizes and alignments by its kind's signature, whatever a block came from goes back through every
 * freeing name, and a kind that this program does not know is an error. Failure: a name that is
 * missing, comes from another object than malloc, or answers unlike its siblings.
 */
#include "claim.h"

#include <malloc.h>

enum kind {
	KIND_ALLOC,
	KIND_FREE,
	KIND_CALLOC,
	KIND_REALLOC,
	KIND_REALLOCARRAY,
	KIND_ALIGNED,
	KIND_POSIX,
	KIND_FREE_SIZED,
	KIND_FREE_ALIGNED_SIZED,
	KIND_USABLE,
	KIND_TRIM,
	KIND_MALLOPT,
	KIND_MALLINFO,
	KIND_MALLINFO2,
	KIND_MALLOC_INFO,
	KIND_MALLOC_STATS,
	KIND_NEW,
	KIND_NEW_NOTHROW,
	KIND_NEW_ALIGNED,
	KIND_NEW_ALIGNED_NOTHROW,
	KIND_DELETE_NOTHROW,
	KIND_DELETE_ALIGNED,
	KIND_DELETE_SIZED_ALIGNED,
	KIND_DELETE_ALIGNED_NOTHROW,
	KIND_DLOPEN,
	KIND_DLSYM,
	KIND_START,
	KIND_EXIT,
	KIND_OTHER
};

static const struct row {
	const char *name;
	enum kind kind;
} rows[] = {
#define S(name, kind, family, meaning) {#name, KIND_##kind},
#include "shim/base/symbols.def"
#undef S
};

#define ROWS (sizeof(rows) / sizeof(*rows))

/* One signature that fits every function here: unused registers are ignored by the callee. */
typedef void *(*any)(uintptr_t, uintptr_t, uintptr_t);

static any function[ROWS];
static const size_t sizes[] = {1, 8, 16, 17, 100, 1024, 1025, 5000, 65536, 65537, 300000, 3 << 20};
static const size_t aligns[] = {16, 64, 256, 4096, 65536};

static void *make(size_t row, size_t size, size_t align, size_t *ret_align)
{
	void *p = NULL;

	*ret_align = 16;
	switch ((int)rows[row].kind) {
	case KIND_ALLOC: return function[row](size, 0, 0);
	case KIND_CALLOC: return function[row](1, size, 0);
	case KIND_REALLOC: return function[row](0, size, 0);
	case KIND_REALLOCARRAY: return function[row](0, size, 1);
	case KIND_ALIGNED: *ret_align = align; return function[row](align, size, 0);
	case KIND_POSIX:
		*ret_align = align;
		return (int)(uintptr_t)function[row]((uintptr_t)&p, align, size) == 0 ? p : NULL;
	case KIND_NEW: return function[row](size, 0, 0);
	case KIND_NEW_NOTHROW: return function[row](size, (uintptr_t)&p, 0);
	case KIND_NEW_ALIGNED: *ret_align = align; return function[row](size, align, 0);
	case KIND_NEW_ALIGNED_NOTHROW:
		*ret_align = align;
		return function[row](size, align, (uintptr_t)&p);
	default: return NULL;
	}
}

static bool makes(enum kind kind)
{
	return kind == KIND_ALLOC || (kind >= KIND_CALLOC && kind <= KIND_POSIX) ||
	       (kind >= KIND_NEW && kind <= KIND_NEW_ALIGNED_NOTHROW);
}

static bool take(size_t row, void *p, size_t size, size_t align)
{
	uintptr_t at = (uintptr_t)p;

	switch ((int)rows[row].kind) {
	case KIND_FREE: function[row](at, 0, 0); return true;
	case KIND_FREE_SIZED: function[row](at, size, 0); return true;
	case KIND_FREE_ALIGNED_SIZED: function[row](at, align, size); return true;
	case KIND_DELETE_NOTHROW:
	case KIND_DELETE_ALIGNED: function[row](at, align, 0); return true;
	case KIND_DELETE_SIZED_ALIGNED: function[row](at, size, align); return true;
	case KIND_DELETE_ALIGNED_NOTHROW: function[row](at, align, at); return true;
	case KIND_REALLOC: return !function[row](at, 0, 0);
	default: return false;
	}
}

static void look(void)
{
	Dl_info malloc_is, this_is;
	void *found = dlsym(RTLD_DEFAULT, "malloc");

	dladdr(found, &malloc_is);
	for (size_t i = 0; i < ROWS; i++) {
		found = dlsym(RTLD_DEFAULT, rows[i].name);
		claim(found, "'%s' is missing", rows[i].name);
		if (!found)
			continue;
		memcpy(&function[i], &found, sizeof(found));
		dladdr(found, &this_is);
		claim(this_is.dli_fbase == malloc_is.dli_fbase, "'%s' comes from %s", rows[i].name,
		      this_is.dli_fname);
	}
}

static void pairs(void)
{
	for (size_t m = 0; m < ROWS; m++)
		for (size_t t = 0; makes(rows[m].kind) && t < ROWS; t++)
			for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
				size_t size = sizes[s], align;
				char *p = make(m, size, aligns[(m + t + s) % 5], &align);
				claim(p && (uintptr_t)p % align == 0, "%s(%zu) = %p, align %zu",
				      rows[m].name, size, (void *)p, align);
				if (!p)
					continue;
				p[0] = p[size - 1] = 1;
				claim(malloc_usable_size(p) >= size, "%s(%zu)", rows[m].name, size);
				if (!take(t, p, size, align))
					free(p);
			}
}

static void failures(void)
{
	for (size_t m = 0; m < ROWS; m++) {
		size_t align;
		if (!makes(rows[m].kind) || rows[m].kind == KIND_NEW ||
		    rows[m].kind == KIND_NEW_ALIGNED)
			continue; /* these throw */
		for (size_t size = PTRDIFF_MAX; size > 1; size += size / 2 + 1) {
			errno = 0;
			void *p = make(m, size, 64, &align);
			claim(!p, "%s(%zu) = %p", rows[m].name, size, p);
			claim(errno == ENOMEM || rows[m].kind == KIND_POSIX ||
				      rows[m].kind >= KIND_NEW,
			      "%s(%zu): errno %d", rows[m].name, size, errno);
			if (size + size / 2 + 1 < size)
				break;
		}
	}
	for (size_t t = 0; t < ROWS; t++)
		if (rows[t].kind != KIND_REALLOC)
			take(t, NULL, 0, 64);
}

int main(void)
{
	if (!claim_ours())
		return claim_skip("the table is ours");
	look();
	if (claim_end())
		return 1;
	pairs();
	failures();
	return claim_end();
}
