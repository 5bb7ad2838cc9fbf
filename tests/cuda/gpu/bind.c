/* SPDX-License-Identifier: MIT */
/*
 * bind RUNTIME    H1: a runtime opened by path, or "static": the one linked in. Ten allocations through
 * it; prints what each call returned and what the library saw of them, if it is there.
 */
#include "tests/cuda/gpu/gpu.h"

#include <dlfcn.h>

typedef int alloc_fn(void **, size_t);
typedef int free_fn(void *);

#ifdef BIND_STATIC
int cudaMalloc(void **, size_t);
int cudaFree(void *);
#endif

/* Does the library's report have this many blocks of device memory? -1: no library. */
static int seen_blocks(void)
{
	int (*report)(int, const char *), fd, blocks = 0;
	void *fn = dlsym(RTLD_DEFAULT, "tiermalloc_report");
	char path[] = "/tmp/tm-gpu-XXXXXX", text[32768], *at;
	ssize_t length;
	if (fn == NULL || (fd = mkstemp(path)) < 0)
		return -1;
	unlink(path);
	memcpy(&report, &fn, sizeof(fn));
	report(fd, "exit");
	length = pread(fd, text, sizeof(text) - 1, 0);
	close(fd);
	text[length < 0 ? 0 : length] = '\0';
	at = strstr(text, "GPU 0 device ");
	if (at != NULL) {
		char *end = strchr(at, '\n');
		while (end != NULL && end > at && end[-1] != ' ')
			end--;
		blocks = end == NULL ? 0 : atoi(end);
	}
	return blocks;
}

int main(int argc, char **argv)
{
	alloc_fn *alloc = NULL;
	free_fn *release = NULL;
	void *p[10], *fn, *runtime;
	int i, rc = 0, seen;
	if (argc < 2)
		return 2;
#ifdef BIND_STATIC
	alloc = cudaMalloc;
	release = cudaFree;
	(void)fn;
	(void)runtime;
#else
	runtime = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (runtime == NULL) {
		gpu_line("H1", GPU_BAD, "no runtime", ", \"why\": \"%s\"", dlerror());
		return 1;
	}
	fn = dlsym(runtime, "cudaMalloc");
	memcpy(&alloc, &fn, sizeof(fn));
	fn = dlsym(runtime, "cudaFree");
	memcpy(&release, &fn, sizeof(fn));
#endif
	for (i = 0; i < 10; i++)
		rc |= alloc(&p[i], (size_t)(i + 1) * MIB);
	seen = seen_blocks();
	for (i = 0; i < 10; i++)
		rc |= release(p[i]);
	gpu_line("H1", rc == 0 && (seen == -1 || seen == 10) ? GPU_OK : GPU_BAD, "ten allocations",
		 ", \"runtime\": \"%s\", \"rc\": %d, \"seen\": %d, \"after\": %d", argv[1], rc,
		 seen, seen_blocks());
	return gpu_failures != 0;
}
