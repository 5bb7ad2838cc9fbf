/* SPDX-License-Identifier: MIT */
/*
 * A driver in another namespace can't be reached by a preload. The report says so, also where only a
 * library of that namespace asks for it; the driver that is seen goes on being seen.
 */
#include "tests/cuda/seen.h"

int main(void)
{
	void *seen, *hidden, *inner, *fn;
	CUresult (*init)(unsigned);
	int (*release)(void *);
	SEEN_NEEDS_HOOKS();
	claim(strstr(seen_report(), "CUDA hidden") == NULL);
	/* Its own lookups are not seen, and nobody asks for a name of the driver from here. */
	inner = dlmopen(LM_ID_NEWLM, claim_beside("libcudart.so.13"), RTLD_NOW);
	claim(inner != NULL, "%s", dlerror());
	fn = dlsym(inner, "cudaFree");
	memcpy(&release, &fn, sizeof(fn));
	ok(release(NULL));
	claim(strstr(seen_report(), "CUDA hidden") != NULL, "%s", seen_report());
	claim(strstr(seen_report(), "  1  drivers in other namespaces") != NULL, "%s",
	      seen_report());
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
	claim(strstr(seen_report(), "  2  drivers in other namespaces") != NULL, "%s",
	      seen_report());
	return claim_end();
}
