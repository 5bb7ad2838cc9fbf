/* SPDX-License-Identifier: MIT */
#include "shim/dl.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>

#include "shim/base/parse.h"
#include "shim/boot.h"
#include "shim/elf.h"
#include "shim/family.h"
#include "shim/module.h"
#include "shim/os/msg.h"

/* Offsets and values hard-coded in the assembly. */
_Static_assert(offsetof(union tm_root_pages, root.next_dlsym) == 104, "dl_*.S");
_Static_assert(offsetof(union tm_root_pages, root.next_dlopen) == 112, "dl_*.S");
_Static_assert(RTLD_DEEPBIND == 8, "dl_*.S");

/* --- the table -------------------------------------------------------------------------------- */

#define BUCKETS 2048u

_Static_assert(BUCKETS >= 2 * TM_DL_ENTRIES, "probes stay short");

/* Hash table by name, open addressing; a slot is filled once and never changes. */
static _Atomic(const struct tm_dl_entry *) bucket[BUCKETS];
static _Atomic size_t entries_used;

static uint32_t hash_of(const char *name)
{
	uint32_t h = 5381;
	for (; *name != '\0'; name++)
		h = h * 33 + (unsigned char)*name;
	return h;
}

static bool same(const char *a, const char *b)
{
	while (*a != '\0' && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

/* The malloc family isn't in the hash table: most programs then touch no page of it. */
static tm_dl_handler lookup(const char *name)
{
	uint32_t i;
	const struct tm_dl_entry *e;
	tm_dl_handler family = tm_family_dl(name);
	if (family != NULL || atomic_load_explicit(&entries_used, memory_order_acquire) == 0)
		return family;
	i = hash_of(name) % BUCKETS;
	for (;; i = (i + 1) % BUCKETS) {
		e = atomic_load_explicit(&bucket[i], memory_order_acquire);
		if (e == NULL || same(e->name, name))
			return e == NULL ? NULL : e->handler;
	}
}

int tm_dl_register(const struct tm_dl_entry *entries, size_t count)
{
	size_t n, used = atomic_load_explicit(&entries_used, memory_order_relaxed);
	do {
		if (count > TM_DL_ENTRIES - used)
			return -ENOSPC;
	} while (!atomic_compare_exchange_weak_explicit(
		&entries_used, &used, used + count, memory_order_acq_rel, memory_order_relaxed));
	for (n = 0; n < count; n++) {
		uint32_t i = hash_of(entries[n].name) % BUCKETS;
		const struct tm_dl_entry *none = NULL;
		while (!atomic_compare_exchange_strong_explicit(&bucket[i], &none, &entries[n],
								memory_order_release,
								memory_order_relaxed)) {
			none = NULL;
			i = (i + 1) % BUCKETS;
		}
	}
	return 0;
}

/* --- dlsym ------------------------------------------------------------------------------------ */

void *tm_dl_real_dlsym(void *handle, const char *name)
{
	void *(*real)(void *, const char *) = NULL;
	uintptr_t address = tm_root.next_dlsym != 0 ? tm_root.next_dlsym : tm_dl_find_dlsym();
	TM_ELF_FUNCTION(address, &real);
	return real == NULL ? NULL : real(handle, name);
}

/* RTLD_NEXT: resolved here by the caller's address, without the real function. */
static void *answer_next(tm_dl_handler handler, const char *name, const void *caller)
{
	struct tm_elf_object where;
	uintptr_t found = tm_elf_next_after((uintptr_t)caller, name, &where);
	void *given;
	if (found == 0)
		return TM_DL_PASS;
	given = handler(name, (void *)found);
	/* not replaced: the real function also handles versions and namespaces */
	return given == (void *)found ? TM_DL_PASS : given;
}

/*
 * Names of the CUDA interfaces. Our exports must not make a program believe that there is a driver:
 * a name that only we define is looked up after us by the real function, which fails and sets
 * dlerror. RTLD_NEXT skips this library anyway.
 */
static void *answer_cuda(void *handle, const char *name)
{
	const struct tm_module *cuda = tm_module_cuda();
	if (cuda == NULL || handle == RTLD_NEXT)
		return TM_DL_PASS;
	if (handle == RTLD_DEFAULT)
		return cuda->is_defined(name) ? TM_DL_PASS : tm_dl_real_dlsym(RTLD_NEXT, name);
	cuda->want_names();
	return NULL;
}

void *tm_dl_answer(void *handle, const char *name, const void *caller)
{
	tm_dl_handler handler;
	void *found;
	bool cuda = name != NULL && name[0] == 'c' && name[1] == 'u';
	if (name == NULL || (handle == RTLD_DEFAULT && !cuda) || !tm_boot() ||
	    tm_root.server != TM_SERVER_ENGINE)
		return TM_DL_PASS;
	if (cuda && ((found = answer_cuda(handle, name)) != NULL || handle == RTLD_DEFAULT))
		return found;
	handler = lookup(name);
	if (handler == NULL)
		return TM_DL_PASS;
	if (handle == RTLD_NEXT)
		return answer_next(handler, name, caller);
	found = tm_dl_real_dlsym(handle, name);
	return found == NULL ? NULL : handler(name, found);
}

/* Only for a real handle: with RTLD_NEXT and a version the answer isn't replaced. */
void *tm_dl_answer_version(void *handle, const char *name, const char *version)
{
	void *(*real)(void *, const char *, const char *) = NULL;
	tm_dl_handler handler;
	uintptr_t address;
	void *found;
	if (name == NULL || handle == RTLD_DEFAULT || handle == RTLD_NEXT || !tm_boot() ||
	    tm_root.server != TM_SERVER_ENGINE || (handler = lookup(name)) == NULL)
		return TM_DL_PASS;
	address = tm_dl_find_dlvsym();
	TM_ELF_FUNCTION(address, &real);
	found = real == NULL ? NULL : real(handle, name, version);
	return found == NULL ? NULL : handler(name, found);
}

/* --- dlopen ----------------------------------------------------------------------------------- */

static struct tm_str base_name(const char *file)
{
	const char *base = file;
	for (; *file != '\0'; file++)
		if (*file == '/')
			base = file + 1;
	return tm_str_of(base);
}

static bool keeps_deepbind(const char *file)
{
	const struct tm_options *o = &tm_root.options;
	struct tm_str globs = tm_str_of(o->deepbind_globs);
	if (tm_root.server != TM_SERVER_ENGINE || o->deepbind == TM_DEEPBIND_KEEP)
		return true;
	if (o->deepbind == TM_DEEPBIND_DROP || file == NULL)
		return false;
	return tm_parse_glob_list(globs, tm_str_of(file)) ||
	       tm_parse_glob_list(globs, base_name(file));
}

static _Atomic uint64_t dropped;

uint64_t tm_dl_dropped(void)
{
	return atomic_load_explicit(&dropped, memory_order_relaxed);
}

int tm_dl_open_flags(const char *file, int flags)
{
	if (!tm_boot() || keeps_deepbind(file))
		return flags;
	atomic_fetch_add_explicit(&dropped, 1, memory_order_relaxed);
	tm_msg(TM_MSG_INFO, "RTLD_DEEPBIND dropped for '%s', TIERMALLOC_DEEPBIND=keep leaves it",
	       file == NULL ? "" : file);
	return flags & ~RTLD_DEEPBIND;
}

/* --- the real functions ----------------------------------------------------------------------- */

TM_AT_START_CODE void tm_dl_boot(void)
{
	tm_root.next_dlsym = tm_elf_next("dlsym");
	tm_root.next_dlopen = tm_elf_next("dlopen");
}

/* Before glibc 2.34 these are in libdl, which may be loaded after this library. */
uintptr_t tm_dl_find_dlsym(void)
{
	return tm_boot() && tm_root.next_dlsym != 0 ? tm_root.next_dlsym
						    : tm_elf_anywhere("dlsym", NULL);
}

uintptr_t tm_dl_find_dlvsym(void)
{
	uintptr_t next = tm_elf_next("dlvsym");
	return next != 0 ? next : tm_elf_anywhere("dlvsym", NULL);
}

uintptr_t tm_dl_find_dlopen(void)
{
	return tm_boot() && tm_root.next_dlopen != 0 ? tm_root.next_dlopen
						     : tm_elf_anywhere("dlopen", NULL);
}
