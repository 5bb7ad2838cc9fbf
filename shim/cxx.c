/* SPDX-License-Identifier: MIT */
#include "shim/cxx.h"

#include <stdlib.h>

#include "shim/boot.h"
#include "shim/elf.h"
#include "shim/os/msg.h"

typedef void (*new_handler)(void);

static void *try_again(size_t size, size_t align)
{
	return align <= 16 ? tm_root.ops.malloc(size) : tm_root.ops.memalign(align, size);
}

/* std::get_new_handler, of the C++ run-time library that is loaded now. */
static new_handler current_handler(void)
{
	new_handler (*get)(void) = NULL;
	TM_ELF_FUNCTION(tm_elf_anywhere("_ZSt15get_new_handlerv", NULL), &get);
	return get == NULL ? NULL : get();
}

static _Noreturn void throw_bad_alloc(size_t size)
{
	void (*throw_it)(void) = NULL; /* std::__throw_bad_alloc */
	TM_ELF_FUNCTION(tm_elf_anywhere("_ZSt17__throw_bad_allocv", NULL), &throw_it);
	if (throw_it != NULL)
		throw_it();
	tm_msg(TM_MSG_ERROR,
	       "operator new: no memory for %zu bytes, and no C++ library to throw with", size);
	abort();
}

TM_COLD void *tm_cxx_new_failed(size_t size, size_t align)
{
	for (;;) {
		new_handler handler = current_handler();
		void *p;
		if (handler == NULL)
			throw_bad_alloc(size);
		handler();
		p = try_again(size, align);
		if (p != NULL)
			return p;
	}
}

/*
 * C cannot catch. Where there is a handler, which may throw, libstdc++'s own nothrow form does the
 * work: it calls operator new, which is ours, and catches.
 */
TM_COLD void *tm_cxx_nothrow_failed(size_t size, size_t align)
{
	static const char nothrow = 0;
	struct tm_elf_object library;
	void *(*plain)(size_t, const void *) = NULL;
	void *(*aligned)(size_t, size_t, const void *) = NULL;
	if (current_handler() == NULL)
		return NULL;
	if (tm_elf_anywhere("_ZSt17__throw_bad_allocv", &library) == 0)
		return NULL;
	TM_ELF_FUNCTION(tm_elf_find(&library, "_ZnwmRKSt9nothrow_t"), &plain);
	TM_ELF_FUNCTION(tm_elf_find(&library, "_ZnwmSt11align_val_tRKSt9nothrow_t"), &aligned);
	if (align <= 16)
		return plain == NULL ? NULL : plain(size, &nothrow);
	return aligned == NULL ? NULL : aligned(size, align, &nothrow);
}
