/* SPDX-License-Identifier: MIT */
/*
 * Several runtimes in one process: plug-ins linked with those of CUDA 12 and 13, opened RTLD_LOCAL so
 * that no search from outside finds their runtime, CUDA 11's by dlopen and dlsym as ctypes does, and
 * one that is part of the program. Each call reaches its own runtime; all memory is seen once.
 */
/* libs: libcudart_static.a */
#include "tests/cuda/seen.h"

#include "tests/cuda/fakert/cudart.h"

struct plugin {
	int (*version)(void);
	void *(*alloc)(size_t);
	int (*release)(void *);
};

static struct plugin open_plugin(const char *name, int flags)
{
	void *handle = dlopen(name, flags);
	struct plugin p = {NULL, NULL, NULL};
	claim(handle != NULL, "%s", dlerror());
	if (handle == NULL)
		exit(1);
	p.version = (int (*)(void))dlsym(handle, "runtime_version");
	p.alloc = (void *(*)(size_t))dlsym(handle, "runtime_alloc");
	p.release = (int (*)(void *))dlsym(handle, "runtime_free");
	return p;
}

int main(void)
{
	int flags[] = {RTLD_NOW | RTLD_LOCAL, RTLD_LAZY | RTLD_LOCAL,
		       RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND};
	struct plugin twelve, thirteen;
	void *eleven, *p[4];
	size_t i;
	SEEN_NEEDS_HOOKS();
	for (i = 0; i < 3; i++) {
		twelve = open_plugin("libruntime12.so", flags[i]);
		thirteen = open_plugin("libruntime13.so", flags[i]);
		claim(twelve.version() == 12090, "%d", twelve.version());
		claim(thirteen.version() == 13000, "%d", thirteen.version());
		p[0] = twelve.alloc(1 * MIB);
		p[1] = thirteen.alloc(2 * MIB);
		claim(p[0] && p[1] && seen_blocks(0, "device") == 2, "%ld",
		      seen_blocks(0, "device"));
		/* Freed by another runtime than it came from: one driver, one book. */
		ok(thirteen.release(p[0]));
		ok(twelve.release(p[1]));
		claim(seen_blocks(0, "device") == 0);
	}
	eleven = dlopen("libcudart.so.11.0", RTLD_NOW | RTLD_LOCAL);
	__typeof__(cudaMalloc) *alloc = (__typeof__(cudaMalloc) *)dlsym(eleven, "cudaMalloc");
	__typeof__(cudaFree) *release = (__typeof__(cudaFree) *)dlsym(eleven, "cudaFree");
	ok(alloc(&p[2], 3 * MIB));
	ok(cudaMalloc(&p[3], 4 * MIB));
	claim(seen_blocks(0, "device") == 2);
	ok(release(p[3]));
	ok(cudaFree(p[2]));
	claim(seen_blocks(0, "device") == 0);
	return claim_end();
}
