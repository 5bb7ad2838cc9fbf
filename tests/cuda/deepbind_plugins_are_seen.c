/* SPDX-License-Identifier: MIT */
/* A plug-in opened with RTLD_DEEPBIND binds to the library all the same (gperftools#1148). */
#include "tests/cuda/seen.h"

int main(void)
{
	void *plugin = dlopen("libdeep_cuda.so", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
	SEEN_NEEDS_HOOKS();
	claim(plugin != NULL, "%s", dlerror());
	void *linked = ((void *(*)(void))dlsym(plugin, "deep_linked"))();
	void *found = ((void *(*)(void))dlsym(plugin, "deep_found"))();
	claim(seen_ours(linked), "linked: %s", seen_owner(linked));
	claim(seen_ours(found), "found: %s", seen_owner(found));
	return claim_end();
}
