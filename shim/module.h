/* SPDX-License-Identifier: MIT */
/*
 * module: what an optional part of the library is asked to do. There is one, the CUDA hooks. The shim
 * never includes a part's headers: it links this one object, which is absent where the part is not
 * built, and in the unit tests.
 *
 * None may allocate from the heap while it holds a lock of its own.
 */
#ifndef TM_MODULE_H
#define TM_MODULE_H

#include "shim/base/attrs.h"
#include "shim/base/fmt.h"

struct tm_module {
	/* At the end of boot, where the engine serves. One thread. */
	void (*boot)(void);
	/* A name that begins with "cu" is looked up by dlsym: registers the part's table, once. */
	void (*want_names)(void);
	/* dlsym(RTLD_DEFAULT): false where the name is ours alone, that is to say unknown to the program. */
	bool (*is_defined)(const char *name);
	/* dlclose has returned: an object that was known may be gone. */
	void (*unloaded)(void);
	/* In a forked child, after the locks were put in order. */
	void (*fork_child)(void);
	/*
	 * In the image of a leak scan, where nothing moves and no lock can be taken: host memory that
	 * devices see. It may hold pointers, and no table of mappings tells it from other shared memory.
	 */
	void (*each_visible)(void (*see)(uintptr_t start, uintptr_t end));
	/*
	 * A sample of the ledger is taken, by any thread at any place: brings the part's figures in the
	 * ledger up to date where that needs no waiting. Bytes on devices; UINT64_MAX: not now.
	 */
	uint64_t (*sample)(void);
	/*
	 * Each block that lives: the row of the ledger that counts it, and when it was born, by the clock's
	 * milliseconds, which wrap. False: not now.
	 */
	bool (*each_block)(void (*see)(uint32_t row, uint32_t born_ms, void *arg), void *arg);
	/* Lines of the report at exit; nothing where the part did nothing. */
	void (*report)(struct tm_fmt_out *out);
};

/* NULL (address) where no part is built. */
extern TM_HIDDEN const struct tm_module tm_cuda_module __attribute__((weak));

TM_INLINE const struct tm_module *tm_module_cuda(void)
{
	return &tm_cuda_module;
}

#endif
