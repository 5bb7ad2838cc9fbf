/* SPDX-License-Identifier: MIT */
/*
 * elf: finds symbols in loaded objects without the loader's functions.
 *
 * dlsym allocates, takes the loader's lock and depends on its caller's address, so neither boot nor
 * an allocation path may use it (H02). This module reads the loader's own list of objects and their
 * hash tables instead. Reads only; allocates nothing; async-signal-safe unless said otherwise.
 */
#ifndef TM_ELF_H
#define TM_ELF_H

#include "shim/base/attrs.h"

/* A loaded object: where it lies and its dynamic section (an array of ElfW(Dyn)). */
struct tm_elf_object {
	uintptr_t base;
	const void *dynamic;
};

/* Any function; converted once by the caller, who knows the type. */
typedef void (*tm_elf_function)(void);

/*
 * The address of a defined function or object of that name, or 0. A default version is preferred
 * to a hidden one. Indirect functions count as undefined: resolvers are not ours to run.
 */
uintptr_t tm_elf_find(const struct tm_elf_object *object, const char *name);

/*
 * What dlsym(RTLD_NEXT, name) would give to this library: the first definition behind it in load
 * order. 0: none. Objects loaded at start-up are never unloaded, which is why no lock is needed
 * for anything that one of them defines.
 */
uintptr_t tm_elf_next(const char *name);

/*
 * The definition that a call of this name reaches, of the objects loaded at start-up: the first in
 * load order, ours included. 0: none.
 */
uintptr_t tm_elf_first(const char *name);

/* How long that definition is, in bytes; 0: not known. */
size_t tm_elf_first_size(const char *name);

/*
 * The first definition behind the object that contains `address`, this library included; 0: none,
 * or no object of the program's own namespace contains it. ret_object: who defines it.
 */
uintptr_t tm_elf_next_after(uintptr_t address, const char *name, struct tm_elf_object *ret_object);

/* The program itself; false: it is static or not in the loader's list. */
bool tm_elf_program(struct tm_elf_object *ret_program);

/* glibc, of the program's own namespace; false: the C library is another one. */
bool tm_elf_libc(struct tm_elf_object *ret_libc);

/* This library (or the program that contains it); false: not in the loader's list. */
bool tm_elf_self(struct tm_elf_object *ret_self);

/*
 * The first definition in any loaded object but this library, wherever it is loaded (RTLD_LOCAL
 * plug-ins too). Takes the loader's list lock: off every lock of ours, not in signal handlers.
 * ret_object: who defines it, or NULL.
 */
uintptr_t tm_elf_anywhere(const char *name, struct tm_elf_object *ret_object);

/*
 * The object that contains an address; false: none of the program's own namespace does. Takes the
 * loader's list lock, as tm_elf_anywhere; so does tm_elf_named: the object whose DT_SONAME it is.
 */
bool tm_elf_containing(uintptr_t address, struct tm_elf_object *ret_object);
bool tm_elf_named(const char *soname, struct tm_elf_object *ret_object);
bool tm_elf_named_like(const char *prefix, struct tm_elf_object *ret_object);

/* NULL: it has none, as programs do. Lives as the object does. */
const char *tm_elf_soname(const struct tm_elf_object *object);

/* The n-th library that an object needs (DT_NEEDED), NULL behind the last. Lives as the object does. */
const char *tm_elf_needed(const struct tm_elf_object *object, unsigned n);

/* Copy an address into a function pointer of any type: TM_ELF_FUNCTION(address, &pointer). */
#define TM_ELF_FUNCTION(address, ret_pointer)                                                      \
	do {                                                                                       \
		uintptr_t tm_elf_address_ = (address);                                             \
		_Static_assert(sizeof(*(ret_pointer)) == sizeof(tm_elf_address_), "a pointer");    \
		__builtin_memcpy((ret_pointer), &tm_elf_address_, sizeof(tm_elf_address_));        \
	} while (0)

#endif
