/* SPDX-License-Identifier: MIT */
/*
 * H36: a C program opens a C++ plug-in RTLD_LOCAL, so that libstdc++ is in no global scope. Its
 * failing new must run the plug-in's new_handler and throw the bad_alloc that the plug-in can
 * catch; opened, closed and opened again, in a second thread, and with RTLD_DEEPBIND. Failure: an
 * abort, because a weak reference to libstdc++ stayed NULL.
 */
#include "claim.h"

#include <pthread.h>

static void *use(void *flags)
{
	void *h = dlopen("libcxx_guest.so", (int)(uintptr_t)flags);
	int (*try_it)(void);

	claim(h, "dlopen: %s", dlerror());
	if (!h)
		return NULL;
	void *found = dlsym(h, "guest_try");
	memcpy(&try_it, &found, sizeof(found));
	int failed = try_it();
	claim(failed == 0, "claim %d of the plug-in does not hold", failed);
	dlclose(h);
	return NULL;
}

int main(void)
{
	pthread_t thread;

	for (int i = 0; i < 3; i++)
		use((void *)(uintptr_t)(RTLD_NOW | RTLD_LOCAL));
	pthread_create(&thread, NULL, use, (void *)(uintptr_t)(RTLD_LAZY | RTLD_LOCAL));
	pthread_join(thread, NULL);
	use((void *)(uintptr_t)(RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND));
	return claim_end();
}
