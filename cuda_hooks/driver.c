/* SPDX-License-Identifier: MIT */
#include "cuda_hooks/driver.h"

#include <stdatomic.h>

#include "cuda_hooks/context.h"
#include "cuda_hooks/hooks.h"
#include "shim/boot.h"
#include "shim/dl.h"
#include "shim/elf.h"
#include "shim/os/maps.h"
#include "shim/os/msg.h"

struct tm_driver tm_driver;

/*
 * Every function of the driver: replaced ones first, in the order of cuda_api.def. The names are
 * stored in the table and not pointed to: the loader would relocate each pointer in every process,
 * with CUDA or without.
 */
struct row {
	char symbol[40];
	char name[36]; /* empty: not replaced */
	uint16_t slot; /* offset in struct tm_driver */
};

static const struct row rows[] = {
#define D(symbol, name, version, stream, kind, parameters, arguments)                              \
	{#symbol, name, offsetof(struct tm_driver, symbol)},
#include "shim/base/cuda_api.def"
#define U(symbol, version, parameters, arguments) {#symbol, "", offsetof(struct tm_driver, symbol)},
#include "shim/base/cuda_api.def"
};

static bool is_replaced(size_t row)
{
	return row < TM_ARRAY_LEN(rows) && rows[row].name[0] != '\0';
}

/*
 * Address of our export of a row. Computed by code, not tabulated, so that a process without CUDA
 * needs no relocations.
 */
static uintptr_t hook_of(size_t row)
{
	size_t i = 0;
#define D(symbol, name, version, stream, kind, parameters, arguments)                              \
	if (row == i++) {                                                                          \
		tm_cu_result(*hook) parameters = symbol;                                           \
		uintptr_t address;                                                                 \
		__builtin_memcpy(&address, &hook, sizeof(address));                                \
		return address;                                                                    \
	}
#include "shim/base/cuda_api.def"
	return 0;
}

_Atomic uint32_t tm_driver_bound;
static uintptr_t driver_base; /* [const once bound] load address of the driver's object */
static _Atomic uint64_t lookups, substituted, other_driver;

static uintptr_t *slot_of(struct tm_driver *driver, size_t row)
{
	return (uintptr_t *)(void *)((char *)driver + rows[row].slot);
}

static bool same(const char *a, const char *b)
{
	while (*a != '\0' && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

/*
 * Holds no lock while it walks the loader's list: a constructor may call us with the loader's lock
 * held.
 */
static void bind(const struct tm_elf_object *object)
{
	struct tm_driver found = {0};
	size_t i;
	for (i = 0; i < TM_ARRAY_LEN(rows); i++)
		*slot_of(&found, i) = tm_elf_find(object, rows[i].symbol);
	tm_hooks_lock();
	if (!tm_driver_is_bound()) {
		tm_driver = found;
		driver_base = object->base;
		tm_context_init();
		atomic_store_explicit(&tm_driver_bound, 1, memory_order_release);
	}
	tm_hooks_unlock();
}

bool tm_driver_find(void)
{
	struct tm_elf_object object;
	if (tm_driver_is_bound())
		return true;
	if (tm_elf_anywhere("cuMemAlloc_v2", &object) == 0)
		return false;
	bind(&object);
	return tm_driver_is_bound();
}

static bool is_gone(void)
{
	struct tm_elf_object object;
	size_t i;
	for (i = 0; i < TM_ARRAY_LEN(rows); i++) {
		uintptr_t at = *slot_of(&tm_driver, i);
		if (at != 0)
			return !tm_elf_containing(at, &object) ||
			       tm_elf_find(&object, rows[i].symbol) != at;
	}
	return false;
}

void tm_driver_unloaded(void)
{
	if (!tm_driver_is_bound() || !is_gone())
		return;
	tm_hooks_lock();
	if (!tm_context_any())
		atomic_store_explicit(&tm_driver_bound, 0, memory_order_release);
	tm_hooks_unlock();
}

/* --- dlsym --------------------------------------------------------------------------------------- */

static bool is_real(size_t row, uintptr_t address)
{
	return address != 0 && *slot_of(&tm_driver, row) == address;
}

/*
 * Answers a dlsym look-up of one of our exports; the first such answer shows which object is the
 * driver.
 */
static void *answer(const char *name, void *found)
{
	struct tm_elf_object object;
	size_t i;
	for (i = 0; is_replaced(i); i++)
		if (same(rows[i].symbol, name))
			break;
	if (!is_replaced(i) || (uintptr_t)found == hook_of(i))
		return found;
	if (!tm_driver_is_bound() && tm_elf_containing((uintptr_t)found, &object))
		bind(&object);
	if (!tm_driver_is_bound() || !is_real(i, (uintptr_t)found)) {
		atomic_fetch_add_explicit(&other_driver, 1, memory_order_relaxed);
		return found;
	}
	atomic_fetch_add_explicit(&substituted, 1, memory_order_relaxed);
	return (void *)hook_of(i);
}

void tm_driver_want_names(void)
{
	static struct tm_dl_entry entries[TM_ARRAY_LEN(rows)];
	static _Atomic uint32_t done;
	size_t count = 0;
	if (tm_root.options.cuda == TM_CUDA_OFF ||
	    atomic_exchange_explicit(&done, 1, memory_order_acq_rel) != 0)
		return;
	for (; is_replaced(count); count++)
		entries[count] = (struct tm_dl_entry){rows[count].symbol, answer};
	if (tm_dl_register(entries, count) != 0)
		tm_msg(TM_MSG_WARN, "no room for the CUDA names: calls by dlsym are not seen");
}

/*
 * True only if a real function of that name exists: our exports alone must not make a program
 * believe that there is a driver or a runtime.
 */
bool tm_driver_is_defined(const char *name)
{
	struct tm_elf_object self;
	if (!tm_elf_self(&self) || tm_elf_find(&self, name) == 0)
		return true;
	return tm_elf_anywhere(name, NULL) != 0;
}

/* --- cuGetProcAddress ----------------------------------------------------------------------------- */

void *tm_driver_substitute(const char *name, void *found)
{
	size_t i;
	atomic_fetch_add_explicit(&lookups, 1, memory_order_relaxed);
	for (i = 0; is_replaced(i); i++) {
		/* Compare the name as well: two exports of a driver may be the same function. */
		if (!is_real(i, (uintptr_t)found) ||
		    (!same(rows[i].name, name) && !same(rows[i].symbol, name)))
			continue;
		atomic_fetch_add_explicit(&substituted, 1, memory_order_relaxed);
		return (void *)hook_of(i);
	}
	return found;
}

/* Counts drivers that the loader's list, which covers the main namespace only, does not have. */
static void see_driver(uintptr_t start, void *count)
{
	struct tm_elf_object object;
	if (!tm_elf_containing(start, &object))
		++*(uint64_t *)count;
}

uint64_t tm_driver_hidden(void)
{
	uint64_t count = 0;
	(void)tm_maps_code("libcuda.so", see_driver, &count);
	return count;
}

void tm_driver_counts(struct tm_driver_counts *ret)
{
	ret->lookups = atomic_load_explicit(&lookups, memory_order_relaxed);
	ret->substituted = atomic_load_explicit(&substituted, memory_order_relaxed);
	ret->other_driver = atomic_load_explicit(&other_driver, memory_order_relaxed);
}
