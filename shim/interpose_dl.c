/* SPDX-License-Identifier: MIT */
/*
 * interpose_dl: wraps dlclose, to update the module table. Cached data about the objects' code is
 * dropped before the call, since other objects may be mapped at the same addresses at once; which
 * objects are gone is checked after the call.
 */
#include <dlfcn.h>

#include "shim/boot.h"
#include "shim/elf.h"
#include "shim/ledger/ledger.h"
#include "shim/ledger/modules.h"
#include "shim/module.h"
#include "shim/thread.h"

/*
 * A signal handler that came meanwhile must not wait for the table's lock: it finds the heap busy.
 */
static void sweep(void)
{
	struct tm_thread_heap held = tm_thread_enter();

	if (held.hold != TM_THREAD_NONE)
		tm_modules_sweep();
	tm_thread_leave(held);
}

TM_EXPORT int dlclose(void *handle)
{
	static uintptr_t address; /* [atomic] */
	uintptr_t at = __atomic_load_n(&address, __ATOMIC_RELAXED);
	int (*next)(void *) = NULL;

	if (at == 0) {
		at = tm_elf_next("dlclose");
		if (at == 0)
			at = tm_elf_anywhere("dlclose", NULL); /* libdl, loaded later */
		__atomic_store_n(&address, at, __ATOMIC_RELAXED);
	}
	TM_ELF_FUNCTION(at, &next);
	if (next == NULL)
		return -1;
	if (!tm_boot() || tm_root.server != TM_SERVER_ENGINE)
		return next(handle);
	bool ledger = tm_ledger_is_on();
	if (ledger)
		tm_unwind_forget();
	int rc = next(handle);
	if (ledger) {
		tm_unwind_forget(); /* what others found out of it until it was gone */
		sweep();
	}
	if (tm_module_cuda() != NULL)
		tm_module_cuda()->unloaded();
	return rc;
}
