/* SPDX-License-Identifier: MIT */
#include "shim/passive.h"

#include "shim/boot.h"
#include "shim/cxx.h"
#include "shim/early.h"
#include "shim/elf.h"
#include "shim/foreign.h"
#include "shim/os/msg.h"

static void passive_free(void *p)
{
	if (tm_early_owns(p))
		tm_early_free(p);
	else
		tm_root.next.free(p);
}

static void *passive_realloc(void *p, size_t size)
{
	void *moved;
	size_t keep;
	if (!tm_early_owns(p))
		return tm_root.next.realloc(p, size);
	moved = tm_root.next.malloc(size);
	keep = tm_early_usable(p);
	if (moved != NULL)
		__builtin_memcpy(moved, p, keep < size ? keep : size);
	return moved;
}

static size_t passive_usable_size(void *p)
{
	return tm_early_owns(p) ? tm_early_usable(p) : tm_root.next.usable_size(p);
}

/* malloc as a program's call reaches it, which is another library's or the program's own. */
static void *first_malloc(size_t size)
{
	void *(*first)(size_t) = NULL;
	TM_ELF_FUNCTION(tm_elf_first("malloc"), &first);
	return first(size);
}

static void *first_memalign(size_t align, size_t size)
{
	void *(*first)(size_t, size_t) = NULL;
	TM_ELF_FUNCTION(tm_elf_first("memalign"), &first);
	return first(align, size);
}

static void first_free(void *p)
{
	void (*first)(void *) = NULL;
	TM_ELF_FUNCTION(tm_elf_first("free"), &first);
	first(p);
}

static void *passive_new(size_t size)
{
	void *p = first_malloc(size);
	return p != NULL ? p : tm_cxx_new_failed(size, 1);
}

static void *passive_new_aligned(size_t size, size_t align)
{
	void *p = first_memalign(align, size);
	return p != NULL ? p : tm_cxx_new_failed(size, align);
}

static void *passive_new_nothrow(size_t size)
{
	void *p = first_malloc(size);
	return p != NULL ? p : tm_cxx_nothrow_failed(size, 1);
}

static void *passive_new_aligned_nothrow(size_t size, size_t align)
{
	void *p = first_memalign(align, size);
	return p != NULL ? p : tm_cxx_nothrow_failed(size, align);
}

static void passive_delete_sized(void *p, size_t size)
{
	(void)size;
	first_free(p);
}

/*
 * C++ as it would be without us: the next definition, of libstdc++ or of a sanitizer that tells new
 * from malloc; where C++ comes later with a plug-in, what libstdc++ would do.
 */
static void pass_cxx(struct tm_ops *ops)
{
	uintptr_t plain = tm_elf_next("_Znwm"), aligned = tm_elf_next("_ZnwmSt11align_val_t");
	uintptr_t del = tm_elf_next("_ZdlPv"), sized = tm_elf_next("_ZdlPvm");
	ops->op_new = passive_new;
	ops->op_new_aligned = passive_new_aligned;
	ops->op_new_nothrow = passive_new_nothrow;
	ops->op_new_aligned_nothrow = passive_new_aligned_nothrow;
	ops->op_delete = first_free;
	ops->op_delete_sized = passive_delete_sized;
	if (plain == 0 || aligned == 0 || del == 0 || sized == 0)
		return;
	TM_ELF_FUNCTION(plain, &ops->op_new);
	TM_ELF_FUNCTION(aligned, &ops->op_new_aligned);
	TM_ELF_FUNCTION(tm_elf_next("_ZnwmRKSt9nothrow_t"), &ops->op_new_nothrow);
	TM_ELF_FUNCTION(tm_elf_next("_ZnwmSt11align_val_tRKSt9nothrow_t"),
			&ops->op_new_aligned_nothrow);
	TM_ELF_FUNCTION(del, &ops->op_delete);
	TM_ELF_FUNCTION(sized, &ops->op_delete_sized);
}

/* Where this code exports nothing, as in the unit tests, nobody stands in front of it. */
static bool is_first(void)
{
	struct tm_elf_object self;
	uintptr_t ours = tm_elf_self(&self) ? tm_elf_find(&self, "malloc") : 0;
	return ours == 0 || tm_elf_first("malloc") == ours;
}

/*
 * A library in front of us defines malloc: a wrapper that calls ours, or a different allocator that
 * lacks some functions of the family. Blocks of those functions would be freed by its free, so they
 * are forwarded as if we were not there; calls that reach our malloc are served.
 */
TM_AT_START_CODE void tm_passive_behind(struct tm_ops *ops)
{
	if (is_first())
		return;
	tm_root.behind = true;
	tm_foreign_resolve(&tm_root.next);
	pass_cxx(ops);
	ops->memalign = tm_root.next.memalign;
	ops->posix_memalign = tm_root.next.posix_memalign;
	tm_msg(TM_MSG_INFO, "another malloc is called first: only what it passes on is served");
}

const char *tm_passive_reason(void)
{
	static const char *const why[] = {"", "TIERMALLOC=off", "the program has a sanitizer",
					  "the C library is not glibc", "no memory at start"};

	return why[tm_root.passive_reason];
}

void tm_passive_begin(enum tm_passive_reason reason)
{
	struct tm_next *n = &tm_root.next;
	struct tm_ops ops;
	tm_root.passive_reason = reason;
	tm_root.server = TM_SERVER_LIBC;
	tm_foreign_resolve(n);
	pass_cxx(&ops);
	ops.malloc = n->malloc;
	ops.calloc = n->calloc;
	ops.memalign = n->memalign;
	ops.posix_memalign = n->posix_memalign;
	ops.free = passive_free;
	ops.realloc = passive_realloc;
	ops.usable_size = passive_usable_size;
	tm_root.ops = ops;
}
