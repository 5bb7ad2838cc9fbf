/* SPDX-License-Identifier: MIT */
/* The test bed itself: runtimes of three releases find drivers of four, and allocate. */
/* libs: libcuda.so.1 */
/* preload: none */
#include "tests/cuda/claim.h"
#include "tests/cuda/fakert/cudart.h"

static int part(const char *soname)
{
	void *rt = dlopen(soname, RTLD_NOW | RTLD_LOCAL), *p = NULL;
	__typeof__(cudaMalloc) *alloc = (__typeof__(cudaMalloc) *)dlsym(rt, "cudaMalloc");
	__typeof__(cudaFree) *release = (__typeof__(cudaFree) *)dlsym(rt, "cudaFree");
	if (rt == NULL || alloc == NULL) {
		claim_say("%s", dlerror());
		return 1;
	}
	ok(alloc(&p, 5 * MIB));
	claim(tmfake_calls("cuMemAlloc_v2") == 1 && tmfake_live() == 1);
	gives(cudaErrorInvalidValue, alloc(NULL, 1));
	ok(release(p));
	ok(release(NULL));
	claim(tmfake_live() == 0);
	return claim_end();
}

int main(int argc, char **argv)
{
	static const char *const runtimes[] = {"libcudart.so.11.0", "libcudart.so.12",
					       "libcudart.so.13"};
	static const char *const drivers[] = {"", "v11020", "v11040", "v12020"};
	char path[PATH_MAX], name[64];
	size_t r, d;
	if (argc > 1)
		return part(argv[1]);
	for (r = 0; r < 3; r++)
		for (d = 0; d < 4; d++) {
			struct claim_output out;
			snprintf(path, sizeof(path), "%s/%s", getenv("TM_TESTS"), drivers[d]);
			setenv("LD_LIBRARY_PATH", path, 1);
			snprintf(name, sizeof(name), "%s", runtimes[r]);
			/* A newer runtime on an older driver finds no getter and asks dlsym for exports. */
			int status = claim_again("", name, &out);
			claim(status == 0, "%s on %s: %d %s", name, drivers[d], status, out.text);
		}
	return claim_end();
}
