/* SPDX-License-Identifier: MIT */
/*
 * libspy: preloaded before the library, writes down what somebody's runtime asks for and gets: every
 * dlsym of a driver's name and every lookup by cuGetProcAddress, with the result, its status and whose
 * function came back. TM_SPY names the file.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cuda/cu.h"

typedef void *dlsym_fn(void *, const char *);
typedef CUresult get4_fn(const char *, void **, int, uint64_t);
typedef CUresult get5_fn(const char *, void **, int, uint64_t, int *);

void *dlsym(void *handle, const char *name);

static get4_fn *real4;
static get5_fn *real5;

static void note(const char *line)
{
	static int fd = -1;
	const char *path = getenv("TM_SPY");
	if (fd < 0 && path != NULL)
		fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, line, strlen(line)) < 0)
		return;
}

/* "export owner" of a function: its name in its library, and driver, library, other or none. */
static const char *describe(void *fn, char text[static 128])
{
	Dl_info info;
	const char *file;
	if (fn == NULL || dladdr(fn, &info) == 0) {
		snprintf(text, 128, "- none");
		return text;
	}
	file = strrchr(info.dli_fname, '/');
	file = file ? file + 1 : info.dli_fname;
	snprintf(text, 128, "%s %s", info.dli_sname ? info.dli_sname : "?",
		 strcmp(file, "libcuda.so.1") == 0       ? "driver"
		 : strcmp(file, "libtiermalloc.so") == 0 ? "library"
							 : "other");
	return text;
}

static void note_lookup(const char *symbol, int version, uint64_t flags, CUresult rc, int status,
			void *fn)
{
	char line[512], who[128];
	snprintf(line, sizeof(line), "get %s %d %llu -> %d %d %s\n", symbol ? symbol : "(null)",
		 version, (unsigned long long)flags, rc, status,
		 describe(rc == 0 ? fn : NULL, who));
	note(line);
}

static void *instead(void *fn, const char *export);

static CUresult spy5(const char *symbol, void **pfn, int version, uint64_t flags, int *status)
{
	CUresult rc = real5(symbol, pfn, version, flags, status);
	note_lookup(symbol, version, flags, rc, status ? *status : -1, pfn ? *pfn : NULL);
	if (rc == 0 && symbol != NULL && strcmp(symbol, "cuGetProcAddress") == 0)
		*pfn = instead(*pfn, version >= 12000 ? "cuGetProcAddress_v2" : "cuGetProcAddress");
	return rc;
}

static CUresult spy4(const char *symbol, void **pfn, int version, uint64_t flags)
{
	CUresult rc = real4(symbol, pfn, version, flags);
	note_lookup(symbol, version, flags, rc, -1, pfn ? *pfn : NULL);
	if (rc == 0 && symbol != NULL && strcmp(symbol, "cuGetProcAddress") == 0)
		*pfn = instead(*pfn, version >= 12000 ? "cuGetProcAddress_v2" : "cuGetProcAddress");
	return rc;
}

/* The getters are replaced by ours, which ask the ones that would have been used. */
static void *instead(void *fn, const char *export)
{
	if (fn != NULL && strcmp(export, "cuGetProcAddress_v2") == 0) {
		memcpy(&real5, &fn, sizeof(fn));
		return (void *)(uintptr_t)spy5;
	}
	if (fn != NULL && strcmp(export, "cuGetProcAddress") == 0) {
		memcpy(&real4, &fn, sizeof(fn));
		return (void *)(uintptr_t)spy4;
	}
	return fn;
}

void *dlsym(void *handle, const char *name)
{
	static dlsym_fn *next;
	char line[512], who[128];
	void *fn;
	if (next == NULL) {
#ifdef __x86_64__
		fn = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
#else
		fn = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17");
#endif
		memcpy(&next, &fn, sizeof(fn));
		/* The one behind us, whatever its version: the library's where it is preloaded. */
		fn = next(RTLD_NEXT, "dlsym");
		memcpy(&next, &fn, sizeof(fn));
	}
	fn = next(handle, name);
	if (handle == RTLD_NEXT || handle == RTLD_DEFAULT || strncmp(name, "cu", 2) != 0)
		return fn;
	snprintf(line, sizeof(line), "dlsym %s -> %s\n", name, describe(fn, who));
	note(line);
	return instead(fn, name);
}
