/* SPDX-License-Identifier: MIT */
#include "shim/foreign.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "shim/boot.h"
#include "shim/early.h"
#include "shim/elf.h"
#include "shim/os/maps.h"
#include "shim/os/mem.h"
#include "shim/os/msg.h"
#include "shim/os/sys.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14 */
#endif

/* glibc's malloc chunks, the same since 2.3: a word with size and flags precedes each block. */
#define CHUNK_HEAD ((size_t)16)
#define CHUNK_MIN ((size_t)32)
#define CHUNK_PREV_USED ((size_t)1)
#define CHUNK_MAPPED ((size_t)2)
#define CHUNK_ARENA ((size_t)4)
#define CHUNK_FLAGS ((size_t)7)
/* Arenas other than the main one have heaps ("stretches" here) aligned to this. */
#define ARENA_STRETCH ((uintptr_t)64 << 20)

/* Header of such a stretch (glibc's heap_info). */
struct stretch {
	uintptr_t arena;
	uintptr_t previous;
	size_t bytes;
};

struct chunk {
	size_t previous_bytes;
	size_t size_and_flags;
};

static _Atomic uint64_t errors[TM_ERROR_KINDS];
static _Atomic uint64_t handed_back;

/* --- is it a block of libc's own malloc? ------------------------------------------------------ */

/* Whether the kernel knows MADV_POPULATE_READ: qemu-user returns success for any unknown advice. */
static bool kernel_answers(void)
{
	enum { UNKNOWN, YES, NO };
	static _Atomic int state;
	int seen = atomic_load_explicit(&state, memory_order_relaxed);
	if (seen == UNKNOWN) {
		int of_page_0 = tm_sys_madvise(NULL, tm_root.page_bytes, MADV_POPULATE_READ);
		seen = of_page_0 == -ENOMEM || of_page_0 == -EFAULT ? YES : NO;
		atomic_store_explicit(&state, seen, memory_order_relaxed);
	}
	return seen == YES;
}

/* Whether the page is readable, determined without risking a signal; if unknown, no. */
static bool readable(uintptr_t address)
{
	uintptr_t page = address & ~(uintptr_t)(tm_root.page_bytes - 1);
	struct tm_maps_range range;
	if (kernel_answers())
		return tm_sys_madvise((void *)page, tm_root.page_bytes, MADV_POPULATE_READ) == 0;
	return tm_maps_find(address, &range) == 0 && range.readable;
}

static const struct chunk *chunk_of(uintptr_t p)
{
	return (const struct chunk *)(p - CHUNK_HEAD);
}

static size_t chunk_bytes(const struct chunk *c)
{
	return c->size_and_flags & ~CHUNK_FLAGS;
}

/* Whether it is a chunk in use within [low, high): the next chunk, if any, says so (PREV_INUSE). */
static bool fits(uintptr_t p, uintptr_t low, uintptr_t high)
{
	const struct chunk *c = chunk_of(p);
	size_t bytes = chunk_bytes(c);
	uintptr_t next = (uintptr_t)c + bytes;
	if ((uintptr_t)c < low || bytes < CHUNK_MIN || bytes % CHUNK_HEAD != 0)
		return false;
	if (next < (uintptr_t)c || next > high - CHUNK_HEAD)
		return false;
	return readable(next) &&
	       (chunk_of(next + CHUNK_HEAD)->size_and_flags & CHUNK_PREV_USED) != 0;
}

static bool in_main_heap(uintptr_t p)
{
	uintptr_t low = tm_root.brk_start, high;
	if (p - CHUNK_HEAD < low)
		return false;
	high = (uintptr_t)tm_syscall6(SYS_brk, 0, 0, 0, 0, 0, 0);
	if (p >= high || !readable(p - CHUNK_HEAD))
		return false;
	return (chunk_of(p)->size_and_flags & (CHUNK_MAPPED | CHUNK_ARENA)) == 0 &&
	       fits(p, low, high);
}

static bool in_arena(uintptr_t p)
{
	uintptr_t start = p & ~(ARENA_STRETCH - 1);
	const struct stretch *s = (const struct stretch *)start;
	if (p - start < sizeof(*s) + CHUNK_HEAD || !readable(p - CHUNK_HEAD) || !readable(start))
		return false;
	if ((chunk_of(p)->size_and_flags & (CHUNK_MAPPED | CHUNK_ARENA)) != CHUNK_ARENA)
		return false;
	if (s->bytes > ARENA_STRETCH || s->bytes % tm_root.page_bytes != 0 || s->arena == 0)
		return false;
	if (s->previous == 0 ? s->arena - start > CHUNK_HEAD * 4 : s->previous % ARENA_STRETCH != 0)
		return false;
	return fits(p, start + sizeof(*s), start + s->bytes);
}

/* A large block is a mapping of its own; its chunk begins at a page or after an alignment gap. */
static bool in_own_mapping(uintptr_t p)
{
	const struct chunk *c = chunk_of(p);
	size_t mask = tm_root.page_bytes - 1, offset = p & mask, total;
	if ((offset & (offset - 1)) != 0 || !readable((uintptr_t)c))
		return false;
	if ((c->size_and_flags & CHUNK_FLAGS) != CHUNK_MAPPED)
		return false;
	if (__builtin_add_overflow(c->previous_bytes, chunk_bytes(c), &total))
		return false;
	if ((((uintptr_t)c - c->previous_bytes) & mask) != 0 || (total & mask) != 0 || total == 0)
		return false;
	return readable((uintptr_t)c - c->previous_bytes) &&
	       readable((uintptr_t)c + chunk_bytes(c) - 1);
}

static bool is_libc_block(uintptr_t p)
{
	if (p % CHUNK_HEAD != 0 || p < TM_PAGE_BYTES)
		return false;
	return in_main_heap(p) || in_own_mapping(p) || in_arena(p);
}

/* --- libc's functions ------------------------------------------------------------------------- */

void tm_foreign_resolve(struct tm_next *ret_next)
{
	TM_ELF_FUNCTION(tm_elf_next("malloc"), &ret_next->malloc);
	TM_ELF_FUNCTION(tm_elf_next("free"), &ret_next->free);
	TM_ELF_FUNCTION(tm_elf_next("calloc"), &ret_next->calloc);
	TM_ELF_FUNCTION(tm_elf_next("realloc"), &ret_next->realloc);
	TM_ELF_FUNCTION(tm_elf_next("memalign"), &ret_next->memalign);
	TM_ELF_FUNCTION(tm_elf_next("posix_memalign"), &ret_next->posix_memalign);
	TM_ELF_FUNCTION(tm_elf_next("malloc_usable_size"), &ret_next->usable_size);
}

/* libc's own free, past any interposer: the block has the header of a libc chunk. */
static uintptr_t libc_function(_Atomic uintptr_t *cache, const char *name)
{
	uintptr_t address = atomic_load_explicit(cache, memory_order_relaxed);
	struct tm_elf_object libc;
	if (address == 0 && tm_elf_libc(&libc)) {
		address = tm_elf_find(&libc, name);
		atomic_store_explicit(cache, address, memory_order_relaxed);
	}
	return address;
}

static size_t libc_usable(void *p)
{
	static _Atomic uintptr_t cache;
	size_t (*usable)(void *) = NULL;
	TM_ELF_FUNCTION(libc_function(&cache, "malloc_usable_size"), &usable);
	return usable == NULL ? 0 : usable(p);
}

static void libc_free(void *p)
{
	static _Atomic uintptr_t cache;
	void (*free_fn)(void *) = NULL;
	TM_ELF_FUNCTION(libc_function(&cache, "free"), &free_fn);
	atomic_fetch_add_explicit(&handed_back, 1, memory_order_relaxed);
	if (free_fn != NULL)
		free_fn(p);
}

/* --- what the engine calls -------------------------------------------------------------------- */

void tm_foreign_free(void *p)
{
	int kept = errno;
	if (p == NULL)
		return;
	if (tm_early_owns(p))
		tm_early_free(p);
	else if (is_libc_block((uintptr_t)p))
		libc_free(p);
	else
		tm_error_count(TM_ERROR_FOREIGN, p);
	errno = kept;
}

size_t tm_foreign_usable(void *p)
{
	if (p == NULL)
		return 0;
	if (tm_early_owns(p))
		return tm_early_usable(p);
	if (is_libc_block((uintptr_t)p))
		return libc_usable(p);
	tm_error_count(TM_ERROR_FOREIGN, p);
	return 0;
}

/* Moves the block into memory of ours. For an address that is no block nothing is copied. */
void *tm_foreign_realloc(void *p, size_t size)
{
	bool is_known = tm_early_owns(p) || is_libc_block((uintptr_t)p);
	size_t old_bytes;
	void *moved;
	if (!is_known) {
		tm_error_count(TM_ERROR_FOREIGN, p);
		errno = ENOMEM;
		return NULL;
	}
	if (size == 0) {
		tm_foreign_free(p);
		return NULL;
	}
	old_bytes = tm_foreign_usable(p);
	moved = tm_root.ops.malloc(size);
	if (moved == NULL)
		return NULL;
	__builtin_memcpy(moved, p, old_bytes < size ? old_bytes : size);
	tm_foreign_free(p);
	return moved;
}

uint64_t tm_foreign_handed_back(void)
{
	return atomic_load_explicit(&handed_back, memory_order_relaxed);
}

uint64_t tm_error_total(enum tm_error_kind kind)
{
	return atomic_load_explicit(&errors[kind], memory_order_relaxed);
}

void tm_error_count(enum tm_error_kind kind, const void *p)
{
	static const char *const said[TM_ERROR_KINDS] = {
		[TM_ERROR_FOREIGN] = "free of an address that was never allocated",
		[TM_ERROR_INTERIOR] = "free of an address inside a block",
		[TM_ERROR_DOUBLE] = "free of a block that is free",
		[TM_ERROR_SIZE_MISMATCH] = "delete with a size that is not the block's",
		[TM_ERROR_OVERRUN] = "a block's neighbouring bytes were written",
		[TM_ERROR_USE_AFTER_FREE] = "a block was written after its free",
	};
	uint64_t before = atomic_fetch_add_explicit(&errors[kind], 1, memory_order_relaxed);

	if (kind == TM_ERROR_SIZE_MISMATCH)
		return;
	if (tm_root.options.on_error == TM_ON_ERROR_ABORT) {
		tm_msg(TM_MSG_ERROR, "%s: %p", said[kind], p);
		abort();
	}
	/* the guards print a message for each of their errors themselves */
	if (before == 0 && kind <= TM_ERROR_DOUBLE)
		tm_msg(TM_MSG_WARN,
		       "%s: %p: ignored and counted, as are later ones; "
		       "TIERMALLOC_ON_ERROR='abort' stops at the first",
		       said[kind], p);
}
