/* SPDX-License-Identifier: MIT */
/*
 * Plugins with runtimes of different releases are opened and closed in turn, also while their memory lives:
 * what one allocated another frees, by a function of another runtime that may lie at the same address.
 */
/* preload: none */
#include "tests/cuda/modes.h"

static void body(const char *mode)
{
	static const char *const names[] = {"libruntime12.so", "libruntime13.so", "libcudart.so.12",
					    "libcudart.so.13", "libcudart.so.11.0"};
	void *driver = dlopen(claim_beside("libcuda.so.1"), RTLD_NOW), *fn, *left = NULL, *p;
	int (*get)(void **, size_t), (*give)(void *);
	void *(*alloc)(size_t) = NULL;
	uint64_t (*live)(void);
	unsigned i, k;
	claim(driver != NULL, "%s", dlerror());
	fn = dlsym(driver, "tmfake_live");
	memcpy(&live, &fn, sizeof(fn));
	for (i = 0; i < 60; i++) {
		const char *name = names[i * 7 % 5];
		bool plugin = strncmp(name, "libruntime", 10) == 0;
		void *library =
			dlopen(claim_beside(name), i % 2 ? RTLD_NOW : RTLD_LAZY | RTLD_LOCAL);
		claim(library != NULL, "%s", dlerror());
		fn = dlsym(library, plugin ? "runtime_alloc" : "cudaMalloc");
		memcpy(plugin ? (void *)&alloc : (void *)&get, &fn, sizeof(fn));
		fn = dlsym(library, plugin ? "runtime_free" : "cudaFree");
		memcpy(&give, &fn, sizeof(fn));
		for (k = 0; k < 2; k++) {
			if (plugin)
				p = alloc(3 << 20);
			else
				ok(get(&p, 3 << 20));
			claim(p != NULL, "%s: step %u of %s", mode, i, name);
			claim(left == NULL || give(left) == 0, "%s: step %u of %s", mode, i, name);
			left = p;
		}
		claim(dlclose(library) == 0);
	}
	claim(strncmp(mode, "bare", 4) != 0 || live() == 1, "%llu", (unsigned long long)live());
}

int main(int argc, char **argv)
{
	return modes_run(argc, argv, body, MODES_ALL);
}
