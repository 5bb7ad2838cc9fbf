/* SPDX-License-Identifier: MIT */
/* Asks the loader in its own name: what RTLD_NEXT, RTLD_DEFAULT and $ORIGIN give depends on it. */
#include <dlfcn.h>
#include <stddef.h>

int caller_only_here(void);
void *caller_default(const char *name);
void *caller_next(const char *name);
void *caller_open(const char *name, int flags);

int caller_only_here(void)
{
	return 42;
}

void *caller_default(const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);
	__asm__ volatile("" : "+r"(found)); /* no tail call: the caller must stay this library */
	return found;
}

void *caller_next(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);
	__asm__ volatile("" : "+r"(found));
	return found;
}

void *caller_open(const char *name, int flags)
{
	void *found = dlopen(name, flags);
	__asm__ volatile("" : "+r"(found));
	return found;
}
