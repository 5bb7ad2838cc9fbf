/* SPDX-License-Identifier: MIT */
/*
 * entry: the exports, one wrapper each around fake_do_*, and the table that cuGetProcAddress
 * searches. Linked with -Bsymbolic: the table must hold our own addresses whatever is preloaded.
 */
#include "tests/cuda/fake/fake.h"

#include <dlfcn.h>

#define WRAP(name, suffix, per_thread, params, args)                                               \
	FAKE_EXPORT CUresult name##suffix params;                                                  \
	CUresult name##suffix params                                                               \
	{                                                                                          \
		CUresult rc = fake_enter(FAKE_ID_##name, per_thread);                              \
		if (rc == CUDA_SUCCESS)                                                            \
			rc = fake_do_##name args;                                                  \
		return fake_leave(FAKE_ID_##name, rc);                                             \
	}

#define WRAP_NONE(name, params, args) WRAP(name, , false, params, args)
#define WRAP_PTSZ(name, params, args)                                                              \
	WRAP_NONE(name, params, args)                                                              \
	WRAP(name, _ptsz, true, params, args)
#define WRAP_PTDS(name, params, args)                                                              \
	WRAP_NONE(name, params, args)                                                              \
	WRAP(name, _ptds, true, params, args)

#define D(base, name, version, variant, kind, params, args) WRAP_##variant(name, params, args)
#include "tests/cuda/fake/driver.def"
#undef D

#define OWN_NONE(name) NULL
#define OWN_PTSZ(name) (void *)(uintptr_t)name##_ptsz
#define OWN_PTDS(name) (void *)(uintptr_t)name##_ptds

const struct fake_row fake_rows[FAKE_IDS] = {
#define D(base, name, version, variant, kind, params, args)                                        \
	{#base, #name, version, FAKE_KIND_##kind, (void *)(uintptr_t)name, OWN_##variant(name)},
#include "tests/cuda/fake/driver.def"
#undef D
};

/*
 * The newest form that is not newer than what is asked for. A name that exists only in newer forms
 * is "not sufficient".
 */
static CUresult look_up(const char *symbol, void **pfn, int version, uint64_t flags, int *status)
{
	const struct fake_row *best = NULL;
	bool known = false;
	void *own = NULL;
	int id;
	if (symbol == NULL || pfn == NULL || version > fake.version || version < 2000 || flags > 3)
		return CUDA_ERROR_INVALID_VALUE;
	for (id = 0; id < FAKE_IDS; id++) {
		const struct fake_row *row = &fake_rows[id];
		if (strcmp(row->base, symbol) != 0 || row->version > fake.version)
			continue;
		known = true;
		if (row->version <= version && (best == NULL || row->version > best->version))
			best = row;
	}
	if (best != NULL && (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) &&
	    version >= 7000)
		own = best->per_thread;
	*pfn = best == NULL ? NULL : own != NULL ? own : best->address;
	if (status != NULL)
		*status = best != NULL ? CU_GET_PROC_ADDRESS_SUCCESS
			  : known      ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
				       : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	/* Until 12 an unknown name was an error. */
	return best == NULL && fake.version < 12000 ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

CUresult fake_do_cuGetProcAddress(const char *symbol, void **pfn, int version, uint64_t flags)
{
	return look_up(symbol, pfn, version, flags, NULL);
}

CUresult fake_do_cuGetProcAddress_v2(const char *symbol, void **pfn, int version, uint64_t flags,
				     int *status)
{
	return look_up(symbol, pfn, version, flags, status);
}

FAKE_EXPORT CUresult tmfake_lookup(const char *symbol, void **pfn, int version, uint64_t flags,
				   int *status)
{
	CUresult rc;
	fake_lock();
	rc = look_up(symbol, pfn, version, flags, status);
	fake_unlock();
	return rc;
}

/*
 * Some drivers look for their own functions while they start. What they get must be theirs, or at
 * least lead to them; asking must not come back here.
 */
void fake_look_at_self(void)
{
	void *self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	void *init, *version, *handles[3] = {NULL, self, RTLD_DEFAULT};
	int i, number = 0;
	for (i = 0; i < 3; i++) {
		init = dlsym(handles[i], "cuInit");
		version = dlsym(handles[i], "cuDriverGetVersion");
		if (init == NULL || version == NULL)
			continue;
		((CUresult(*)(int *))version)(&number);
		if (number != fake.version)
			fake_misused("found another driver", "cuInit");
	}
	if (self != NULL)
		dlclose(self);
}

/* Private tables are no part of the interface; there are none here. */
CUresult fake_do_cuGetExportTable(const void **table, const CUuuid *id)
{
	return table == NULL || id == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_FOUND;
}
