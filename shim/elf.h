/* SPDX-License-Identifier: MIT */
/*
 * elf: finds symbols in loaded objects without the loader's functions.
 *
 * dlsym allocates, takes the loader's lock and depends on its caller's address, so neither boot nor
 * an allocation path may call it (H02). This module reads the loader's list of objects (link_map)
 * and their symbol hash tables instead. Writes nothing, allocates nothing; async-signal-safe unless
 * said otherwise.
 */
#ifndef TM_ELF_H
#define TM_ELF_H

#include "shim/base/attrs.h"

/* A loaded object: its load address and its dynamic section (an array of ElfW(Dyn)). */
struct tm_elf_object {
	uintptr_t base;
	const void *dynamic;
};

/* A function of any type; the caller converts it once. */
typedef void (*tm_elf_function)(void);

/*
 * The address of the object's definition of a function or variable, or 0. A default symbol version
 * is preferred to a hidden one. Indirect functions (IFUNC) count as undefined: we must not run
 * resolvers.
 */
uintptr_t tm_elf_find(const struct tm_elf_object *object, const char *name);

/*
 * What dlsym(RTLD_NEXT, name) would return to this library: the first definition after it in load
 * order; 0: none. Takes no lock: a definition in an object loaded at start-up stays valid, since
 * those objects are never unloaded.
 */
uintptr_t tm_elf_next(const char *name);

/*
 * The definition that a call of this name is bound to: the first in load order among the objects
 * loaded at start-up, this library included. 0: none.
 */
uintptr_t tm_elf_first(const char *name);

/* Size of that definition in bytes; 0: unknown. */
size_t tm_elf_first_size(const char *name);

/*
 * The first definition after the object that contains `address`, this library included; 0: none, or
 * no object of the main namespace contains the address. ret_object: the defining object.
 */
uintptr_t tm_elf_next_after(uintptr_t address, const char *name, struct tm_elf_object *ret_object);

/* The main program; false: it is static or not in the loader's list. */
bool tm_elf_program(struct tm_elf_object *ret_program);

/* glibc in the main namespace; false: the C library is another one. */
bool tm_elf_libc(struct tm_elf_object *ret_libc);

/* This library (or the program that contains it); false: not in the loader's list. */
bool tm_elf_self(struct tm_elf_object *ret_self);

/*
 * The first definition in any loaded object except this library, including RTLD_LOCAL plug-ins.
 * Takes the loader's list lock: the caller holds none of our locks and is no signal handler.
 * ret_object: receives the defining object; may be NULL.
 */
uintptr_t tm_elf_anywhere(const char *name, struct tm_elf_object *ret_object);

/*
 * Find an object of the main namespace by an address inside it, by its DT_SONAME, or by a prefix of
 * that. False: none. Take the loader's list lock, with the restrictions of tm_elf_anywhere.
 */
bool tm_elf_containing(uintptr_t address, struct tm_elf_object *ret_object);
bool tm_elf_named(const char *soname, struct tm_elf_object *ret_object);
bool tm_elf_named_like(const char *prefix, struct tm_elf_object *ret_object);

/* DT_SONAME; NULL: none (as in programs). Valid while the object is loaded. */
const char *tm_elf_soname(const struct tm_elf_object *object);

/* The object's n-th DT_NEEDED entry; NULL after the last. Valid while the object is loaded. */
const char *tm_elf_needed(const struct tm_elf_object *object, unsigned n);

/* Copies an address into a function pointer of any type: TM_ELF_FUNCTION(address, &pointer). */
#define TM_ELF_FUNCTION(address, ret_pointer)                                                      \
	do {                                                                                       \
		uintptr_t tm_elf_address_ = (address);                                             \
		_Static_assert(sizeof(*(ret_pointer)) == sizeof(tm_elf_address_), "a pointer");    \
		__builtin_memcpy((ret_pointer), &tm_elf_address_, sizeof(tm_elf_address_));        \
	} while (0)

#endif
