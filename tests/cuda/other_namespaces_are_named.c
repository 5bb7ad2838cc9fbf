/* SPDX-License-Identifier: MIT */
/*
 * A driver in another namespace can't be reached by a preload. The report says so; the driver that is
 * seen goes on being seen.
 */
#include "tests/cuda/seen.h"

int main(void)
{
	void *seen, *hidden, *fn;
	CUresult (*init)(unsigned);
	SEEN_NEEDS_HOOKS();
	seen = dlopen("libcuda.so.1", RTLD_NOW);
	claim(seen_ours(dlsym(seen, "cuMemAlloc_v2")));
	hidden = dlmopen(LM_ID_NEWLM, claim_beside("libcuda.so.1"), RTLD_NOW);
	claim(hidden != NULL, "%s", dlerror());
	fn = dlsym(hidden, "cuInit");
	memcpy(&init, &fn, sizeof(fn));
	ok(init(0));
	claim(seen_ours(dlsym(seen, "cuMemFree_v2")));
	claim(strstr(seen_report(), "CUDA bypassed") != NULL, "the report does not name it:\n%s",
	      strstr(seen_report(), "RSS") ? strstr(seen_report(), "RSS") : "");
	return claim_end();
}
