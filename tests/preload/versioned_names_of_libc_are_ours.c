/* SPDX-License-Identifier: MIT */
/*
 * H92: the family asked of libc's handle by name and version. Right: ours, as dlsym gives; other names
 * and versions as libc has them. Failure: libc's free gets our block and aborts.
 */
#include "claim.h"

#include <gnu/libc-version.h>

#if defined(__x86_64__)
#define BASE "GLIBC_2.2.5"
#else
#define BASE "GLIBC_2.17"
#endif

int main(void)
{
	void *handle = dlopen("libc.so.6", RTLD_NOW);
	void *found[] = {dlvsym(handle, "malloc", BASE), dlvsym(handle, "free", BASE),
			 dlvsym(handle, "strlen", BASE)};
	void *(*take)(size_t);
	void (*give)(void *);
	size_t (*length)(const char *);

	claim(handle && found[0] && found[1] && found[2], "libc %s lacks names of %s",
	      gnu_get_libc_version(), BASE);
	memcpy(&take, &found[0], sizeof(take));
	memcpy(&give, &found[1], sizeof(give));
	memcpy(&length, &found[2], sizeof(length));
	claim(length("four") == 4, "another name is not what libc has");
	give(strdup("ours"));
	free(take(100));
	give(take(100000));
	claim(dlvsym(handle, "free", "NO_SUCH_VERSION") == NULL, "a version that is not there");
	claim(dlvsym(RTLD_NEXT, "free", BASE) != NULL, "the next definition");
	return 0;
}
