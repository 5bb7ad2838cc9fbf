/* SPDX-License-Identifier: MIT */
/* dies: SIGABRT */
/* stderr: tiermalloc: operator new: no memory for 1152921504606846976 bytes, and no C\+\+ library to throw with */
/*
 * H36: operator new cannot give NULL, and in a process without libstdc++ there is nobody to throw
 * with: one line, then abort. The nothrow form gives NULL there too.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

int main(void)
{
	static const char nothrow;
	void *(*gentle)(size_t, const void *), *(*plain)(size_t);
	void *found[2] = {dlsym(RTLD_DEFAULT, "_ZnwmRKSt9nothrow_t"), dlsym(RTLD_DEFAULT, "_Znwm")};

	if (!found[0] || !found[1])
		return 2;
	memcpy(&gentle, &found[0], sizeof(found[0]));
	memcpy(&plain, &found[1], sizeof(found[1]));
	if (gentle((size_t)1 << 60, &nothrow))
		return 3;
	return plain((size_t)1 << 60) != NULL;
}
