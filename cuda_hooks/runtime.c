/* SPDX-License-Identifier: MIT */
/*
 * runtime: exported functions of libcudart that only record the caller, so that the driver's hooks
 * know the program's call site instead of the runtime's.
 *
 * Several runtimes may be loaded, even where a search from this library finds none (RTLD_LOCAL), so
 * the real function depends on the caller: it is that of the libcudart.so.N that the caller's own
 * library depends on, else the next one in load order. It is looked up once per call site, until an
 * object is unloaded.
 */
#include <stdatomic.h>

#include "cuda_hooks/hooks.h"
#include "shim/base/hash.h"
#include "shim/elf.h"

enum {
#define R(symbol, kind, parameters, arguments) INDEX_##symbol,
#include "shim/base/cuda_api.def"
};

/*
 * Cache of the real function by call site. A slot is filled once; if all probes are taken, nothing
 * is cached.
 */
#define SLOT_BITS 10u
#define PROBES 8u
#define BUSY 1u

static struct {
	_Atomic uintptr_t key;
	uintptr_t real;
} known[1u << SLOT_BITS];

static _Atomic uint32_t any; /* 1: some slot may be in use */

/*
 * Empties the cache: after an unload the call sites' addresses may belong to other code. The next
 * calls fill it again.
 */
void tm_runtime_unloaded(void)
{
	size_t i;
	if (atomic_exchange_explicit(&any, 0, memory_order_acq_rel) == 0)
		return;
	for (i = 0; i < TM_ARRAY_LEN(known); i++)
		atomic_store_explicit(&known[i].key, 0, memory_order_release);
}

static bool begins(const char *text, const char *with)
{
	for (; *with != '\0'; text++, with++)
		if (*text != *with)
			return false;
	return true;
}

static TM_COLD uintptr_t find_real(uintptr_t caller, const char *symbol)
{
	struct tm_elf_object object, runtime;
	const char *needed;
	uintptr_t real;
	unsigned i;
	if (tm_elf_containing(caller, &object)) {
		for (i = 0; (needed = tm_elf_needed(&object, i)) != NULL; i++)
			if (begins(needed, "libcudart.so") && tm_elf_named(needed, &runtime) &&
			    (real = tm_elf_find(&runtime, symbol)) != 0)
				return real;
	}
	real = tm_elf_next(symbol);
	return real != 0 ? real : tm_elf_anywhere(symbol, NULL);
}

static TM_COLD uintptr_t learn(uintptr_t caller, uintptr_t key, const char *symbol)
{
	uintptr_t real = find_real(caller, symbol), none = 0;
	size_t slot = tm_hash_slot(key, SLOT_BITS), i;
	for (i = 0; real != 0 && i < PROBES; i++) {
		size_t at = (slot + i) % TM_ARRAY_LEN(known);
		none = 0;
		if (!atomic_compare_exchange_strong_explicit(&known[at].key, &none, BUSY,
							     memory_order_acquire,
							     memory_order_relaxed))
			continue;
		known[at].real = real;
		atomic_store_explicit(&any, 1, memory_order_relaxed);
		atomic_store_explicit(&known[at].key, key, memory_order_release);
		break;
	}
	return real;
}

/*
 * The key includes the function's index: an indirect call at one site may reach several functions.
 */
static uintptr_t real_of(uintptr_t caller, unsigned index, const char *symbol)
{
	uintptr_t key = caller ^ (uintptr_t)(index + 1) << 56;
	size_t slot = tm_hash_slot(key, SLOT_BITS), i;
	for (i = 0; i < PROBES; i++) {
		size_t at = (slot + i) % TM_ARRAY_LEN(known);
		uintptr_t seen = atomic_load_explicit(&known[at].key, memory_order_acquire);
		if (seen == key)
			return known[at].real;
		if (seen == 0)
			break;
	}
	return learn(caller, key, symbol);
}

#define R(symbol, kind, parameters, arguments)                                                     \
	TM_EXPORT tm_rt_error symbol parameters                                                    \
	{                                                                                          \
		uintptr_t caller = (uintptr_t)__builtin_return_address(0);                         \
		struct tm_hooks_thread *t = &tm_hooks_thread;                                      \
		uintptr_t address = real_of(caller, INDEX_##symbol, #symbol);                      \
		tm_rt_error(*real) parameters;                                                     \
		tm_rt_error rc;                                                                    \
		if (address == 0)                                                                  \
			return TM_RT_NO_RUNTIME;                                                   \
		TM_ELF_FUNCTION(address, &real);                                                   \
		if (t->tagged++ == 0)                                                              \
			t->site = caller;                                                          \
		rc = real arguments;                                                               \
		t->tagged--;                                                                       \
		return rc;                                                                         \
	}
#include "shim/base/cuda_api.def"
