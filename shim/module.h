/* SPDX-License-Identifier: MIT */
/*
 * module: the interface of an optional component of the library; the CUDA hooks are the only one.
 * The shim never includes a component's headers: it refers to one weak object, which is absent
 * where the component isn't built, and in the unit tests.
 *
 * A component must not allocate from the heap while it holds a lock of its own.
 */
#ifndef TM_MODULE_H
#define TM_MODULE_H

#include "shim/base/attrs.h"
#include "shim/base/fmt.h"

struct tm_module {
	/* At the end of boot, if the engine serves. Single-threaded. */
	void (*boot)(void);
	/*
	 * dlsym is asked for a name that begins with "cu": registers the component's table, once.
	 */
	void (*want_names)(void);
	/* For dlsym(RTLD_DEFAULT): false if only this library defines the name. */
	bool (*is_defined)(const char *name);
	/* After dlclose: an object that the component has looked up may be gone. */
	void (*unloaded)(void);
	/* In a forked child, after the locks were reinitialised. */
	void (*fork_child)(void);
	/*
	 * In the image of a leak scan (scan.h), where no other thread runs and no lock can be
	 * taken: calls `see` for each range of host memory that devices can access. It may hold
	 * pointers, and /proc/self/maps does not distinguish it from other shared memory.
	 */
	void (*each_visible)(void (*see)(uintptr_t start, uintptr_t end));
	/*
	 * Before a sample of the ledger, by any thread: updates the component's figures in the
	 * ledger if it need not wait for a lock. Returns the bytes on devices; UINT64_MAX: not now.
	 */
	uint64_t (*sample)(void);
	/*
	 * Calls `see` for each live block: row: of the ledger's device table; born_ms: time of
	 * birth, the low 32 bits of tm_clock_ms. False: not now.
	 */
	bool (*each_block)(void (*see)(uint32_t row, uint32_t born_ms, void *arg), void *arg);
	/* Adds lines to the report at exit; none if the component was not used. */
	void (*report)(struct tm_fmt_out *out);
};

/* Weak: its address is NULL if the component isn't built. */
extern TM_HIDDEN const struct tm_module tm_cuda_module __attribute__((weak));

TM_INLINE const struct tm_module *tm_module_cuda(void)
{
	return &tm_cuda_module;
}

#endif
