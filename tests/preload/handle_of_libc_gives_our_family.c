/* SPDX-License-Identifier: MIT */
/*
 * H92 H42: foreign-function interfaces take free, malloc and malloc_trim from a handle of
 * libc.so.6 itself. Right: they get the preloaded ones, so that a block of strdup can be freed
 * and a trim trims. Failure: libc's free gets our block and aborts (every rival), or the trim
 * returns 0.
 */
#include "claim.h"

#include <malloc.h>

struct family {
	void (*free)(void *);
	void *(*malloc)(size_t);
	void *(*realloc)(void *, size_t);
	void *(*calloc)(size_t, size_t);
	char *(*strdup)(const char *);
	size_t (*usable)(void *);
	int (*trim)(size_t);
};

static void through(void *handle, const char *which)
{
	struct family f;
	void *found[] = {dlsym(handle, "free"),       dlsym(handle, "malloc"),
			 dlsym(handle, "realloc"),    dlsym(handle, "calloc"),
			 dlsym(handle, "strdup"),     dlsym(handle, "malloc_usable_size"),
			 dlsym(handle, "malloc_trim")};

	for (size_t i = 0; i < sizeof(found) / sizeof(*found); i++)
		claim(found[i], "%s: symbol %zu", which, i);
	memcpy(&f, found, sizeof(f));
	f.free(f.strdup("libc's strdup"));
	f.free(strdup("ours"));
	f.free(malloc(100));
	f.free(malloc(1 << 20));
	free(f.malloc(100));
	free(f.calloc(3, 100));
	free(f.realloc(malloc(10), 100000));
	char *p = f.realloc(f.strdup("grown"), 5000);
	claim(p && strcmp(p, "grown") == 0 && malloc_usable_size(p) >= 5000, "%s: realloc", which);
	claim(f.usable(p) == malloc_usable_size(p), "%s: %zu and %zu", which, f.usable(p),
	      malloc_usable_size(p));
	f.free(p);

	enum { BLOCKS = 20000, SIZE = 3000 };
	static char *block[BLOCKS];
	for (int i = 0; i < BLOCKS; i++)
		block[i] = memset(malloc(SIZE), 1, SIZE);
	for (int i = 0; i < BLOCKS; i++)
		free(block[i]);
	long before = claim_status_kib("VmRSS:");
	int gave = f.trim(0);
	long after = claim_status_kib("VmRSS:");
	claim(gave == 1 || before < 20000, "%s: malloc_trim gave nothing of %ld KiB", which,
	      before);
	claim(after < 20000, "%s: %ld KiB before the trim, %ld after", which, before, after);
}

int main(void)
{
	void *fresh = dlopen("libc.so.6", RTLD_NOW),
	     *noload = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);

	claim(fresh && noload, "no handle of libc");
	if (claim_end())
		return 1;
	through(fresh, "libc.so.6");
	through(noload, "RTLD_NOLOAD");
	through(RTLD_DEFAULT, "RTLD_DEFAULT");
	through(dlopen(NULL, RTLD_NOW), "the program's handle");
	return claim_end();
}
