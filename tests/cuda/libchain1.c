/* SPDX-License-Identifier: MIT */
/* libs: libchain2.so */
/* libchain1: asks for the next and the default definition of its own names, as tools' run-times do. */
#include <dlfcn.h>
#include <stddef.h>

int cuda_chain(void);
int chain(void);
int chain_next(const char *name);
int chain_default(const char *name);

int chain(void)
{
	return 1;
}

int cuda_chain(void)
{
	return 1;
}

int chain_next(const char *name)
{
	int (*fn)(void) = (int (*)(void))dlsym(RTLD_NEXT, name);
	return fn == NULL ? -1 : fn();
}

int chain_default(const char *name)
{
	int (*fn)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, name);
	return fn == NULL ? -1 : fn();
}
