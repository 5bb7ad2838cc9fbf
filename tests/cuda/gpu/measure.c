/* SPDX-License-Identifier: MIT */
/*
 * measure latency   H2: what calls of the driver cost; alignment of what they return
 * measure lookup    H3: do cuGetProcAddress and dlsym give one address for one function?
 * measure pool N    H8: pairs of allocation and free by N threads
 */
#include "tests/cuda/gpu/gpu.h"

#include <dlfcn.h>
#include <pthread.h>

#define MOST 1000

static uint64_t sample[MOST];

static void report(const char *step, const char *what, size_t bytes, unsigned n)
{
	qsort(sample, n, sizeof(sample[0]), gpu_compare);
	gpu_line(step, GPU_FACT, what,
		 ", \"bytes\": %zu, \"n\": %u, \"p50_ns\": %llu, \"p99_ns\": %llu", bytes, n,
		 (unsigned long long)sample[n / 2], (unsigned long long)sample[n * 99 / 100]);
}

#define TIMED(i, call)                                                                             \
	do {                                                                                       \
		uint64_t timed_start = gpu_now_ns();                                               \
		GPU_NEED("H2", call);                                                              \
		sample[i] = gpu_now_ns() - timed_start;                                            \
	} while (0)

static void allocation(size_t bytes, unsigned n)
{
	CUdeviceptr *p = calloc(n, sizeof(*p)), align = 0;
	char what[64];
	unsigned i;
	for (i = 0; i < n; i++) {
		TIMED(i, cuMemAlloc_v2(&p[i], bytes));
		align |= p[i];
	}
	report("H2", "cuMemAlloc", bytes, n);
	for (i = 0; i < n; i++)
		TIMED(i, cuMemFree_v2(p[i]));
	report("H2", "cuMemFree", bytes, n);
	snprintf(what, sizeof(what), "alignment");
	gpu_line("H2", (align & 511) == 0 ? GPU_OK : GPU_BAD, what,
		 ", \"bytes\": %zu, \"alignment\": %llu, \"gap\": %lld", bytes, align & -align,
		 n > 1 ? (long long)(p[1] - p[0]) : 0);
	free(p);
}

static void mapping(size_t bytes, unsigned n)
{
	CUmemAllocationProp prop = {.type = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
				  CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle h[64];
	CUdeviceptr va[64];
	unsigned i;
	n = n > 64 ? 64 : n;
	for (i = 0; i < n; i++)
		TIMED(i, cuMemAddressReserve(&va[i], bytes, 0, 0, 0));
	report("H2", "cuMemAddressReserve", bytes, n);
	for (i = 0; i < n; i++)
		TIMED(i, cuMemCreate(&h[i], bytes, &prop, 0));
	report("H2", "cuMemCreate", bytes, n);
	for (i = 0; i < n; i++)
		TIMED(i, cuMemMap(va[i], bytes, 0, h[i], 0));
	report("H2", "cuMemMap", bytes, n);
	for (i = 0; i < n; i++)
		TIMED(i, cuMemSetAccess(va[i], bytes, &access, 1));
	report("H2", "cuMemSetAccess", bytes, n);
	for (i = 0; i < n; i++)
		TIMED(i, cuMemUnmap(va[i], bytes));
	report("H2", "cuMemUnmap", bytes, n);
	for (i = 0; i < n; i++)
		TIMED(i, cuMemRelease(h[i]));
	report("H2", "cuMemRelease", bytes, n);
	for (i = 0; i < n; i++)
		TIMED(i, cuMemAddressFree(va[i], bytes));
	report("H2", "cuMemAddressFree", bytes, n);
}

static int latency(void)
{
	static const size_t sizes[] = {512, 65536, MIB, 2 * MIB, 20 * MIB, 256 * MIB, 2048 * MIB};
	static const unsigned counts[] = {500, 500, 200, 200, 100, 40, 10};
	static const size_t mapped[] = {2 * MIB, 32 * MIB, 512 * MIB};
	CUcontext ctx = gpu_begin("H2");
	CUdeviceptr p;
	CUevent event;
	CUstream stream;
	size_t free_bytes, total;
	unsigned i, n = gpu_rounds(500);
	/* The first allocation of a process starts things up. */
	GPU_NEED("H2", cuMemAlloc_v2(&p, MIB));
	GPU_NEED("H2", cuMemFree_v2(p));
	for (i = 0; i < 7; i++)
		allocation(sizes[i], gpu_rounds(counts[i]));
	for (i = 0; i < 3; i++)
		mapping(mapped[i], i == 2 ? 8 : 40);
	for (i = 0; i < n; i++)
		TIMED(i, cuCtxSynchronize());
	report("H2", "cuCtxSynchronize of an idle context", 0, n);
	GPU_NEED("H2", cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	for (i = 0; i < n; i++)
		TIMED(i, cuCtxRecordEvent(ctx, event));
	report("H2", "cuCtxRecordEvent", 0, n);
	for (i = 0; i < n; i++)
		TIMED(i, cuEventQuery(event));
	report("H2", "cuEventQuery", 0, n);
	GPU_NEED("H2", cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (i = 0; i < n; i++) {
		TIMED(i, cuMemAllocAsync(&p, 2 * MIB, stream));
		GPU_NEED("H2", cuMemFreeAsync(p, stream));
	}
	report("H2", "cuMemAllocAsync", 2 * MIB, n);
	for (i = 0; i < n; i++)
		TIMED(i, cuMemGetInfo_v2(&free_bytes, &total));
	report("H2", "cuMemGetInfo", 0, n);
	gpu_line("H2", GPU_FACT, "device", ", \"free_bytes\": %zu, \"total_bytes\": %zu",
		 free_bytes, total);
	return gpu_failures != 0;
}

/* --- H3 --------------------------------------------------------------------------------------- */

static const struct {
	const char *base, *name;
	int version;
	bool own;
} rows[] = {
#define OWN_NONE false
#define OWN_PTSZ true
#define OWN_PTDS true
#define D(base, name, version, variant, kind, params, args) {#base, #name, version, OWN_##variant},
#include "tests/cuda/fake/driver.def"
#undef D
};

static int lookup(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *fn, *exported, *got;
	CUresult (*get)(const char *, void **, int, uint64_t, int *);
	unsigned i, same = 0, other = 0, missing = 0;
	int version = 0, status;
	if (driver == NULL || (fn = dlsym(driver, "cuGetProcAddress_v2")) == NULL) {
		gpu_line("H3", GPU_BAD, "no getter", "%s", "");
		return 1;
	}
	memcpy(&get, &fn, sizeof(fn));
	GPU_NEED("H3", cuInit(0));
	GPU_NEED("H3", cuDriverGetVersion(&version));
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		exported = dlsym(driver, rows[i].name);
		got = NULL;
		if (rows[i].version > version ||
		    get(rows[i].base, &got, rows[i].version, 0, &status) != CUDA_SUCCESS ||
		    got == NULL) {
			missing++;
			continue;
		}
		if (got == exported)
			same++;
		else
			other++;
		if (got != exported)
			gpu_line("H3", GPU_FACT, rows[i].name,
				 ", \"getter\": \"%p\", \"dlsym\": \"%p\"", got, exported);
	}
	gpu_line("H3", other == 0 ? GPU_OK : GPU_BAD, "one address for one function",
		 ", \"version\": %d, \"same\": %u, \"other\": %u, \"missing\": %u", version, same,
		 other, missing);
	return gpu_failures != 0;
}

/* --- H8 --------------------------------------------------------------------------------------- */

static CUcontext pool_ctx;
static unsigned pool_rounds;

struct worker {
	pthread_t thread;
	uint64_t *ns;
	unsigned number;
};

static void *pairs(void *arg)
{
	static const size_t sizes[] = {4096, 65536, MIB, 4 * MIB, 20 * MIB};
	struct worker *w = arg;
	unsigned i;
	GPU_NEED("H8", cuCtxSetCurrent(pool_ctx));
	for (i = 0; i < pool_rounds; i++) {
		CUdeviceptr p;
		uint64_t start = gpu_now_ns();
		GPU_NEED("H8", cuMemAlloc_v2(&p, sizes[(i + w->number) % 5]));
		w->ns[i] = gpu_now_ns() - start;
		GPU_NEED("H8", cuMemFree_v2(p));
	}
	return NULL;
}

static int pool(unsigned threads)
{
	struct worker *w = calloc(threads, sizeof(*w));
	uint64_t *all, start;
	unsigned i;
	pool_ctx = gpu_begin("H8");
	pool_rounds = gpu_rounds(2000);
	all = calloc((size_t)threads * pool_rounds, sizeof(*all));
	start = gpu_now_ns();
	for (i = 0; i < threads; i++) {
		w[i].ns = all + (size_t)i * pool_rounds;
		w[i].number = i;
		if (pthread_create(&w[i].thread, NULL, pairs, &w[i]) != 0)
			return 1;
	}
	for (i = 0; i < threads; i++)
		pthread_join(w[i].thread, NULL);
	start = gpu_now_ns() - start;
	qsort(all, (size_t)threads * pool_rounds, sizeof(*all), gpu_compare);
	gpu_line(
		"H8", GPU_FACT, "pairs",
		", \"mode\": \"%s\", \"threads\": %u, \"p50_ns\": %llu, \"p99_ns\": %llu, \"pair_ns\": %llu",
		getenv("TM_GPU_MODE") ? getenv("TM_GPU_MODE") : "bare", threads,
		(unsigned long long)all[threads * pool_rounds / 2],
		(unsigned long long)all[(size_t)threads * pool_rounds * 99 / 100],
		(unsigned long long)(start / pool_rounds / threads));
	free(all);
	free(w);
	return gpu_failures != 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "latency") == 0)
		return latency();
	if (argc > 1 && strcmp(argv[1], "lookup") == 0)
		return lookup();
	if (argc > 2 && strcmp(argv[1], "pool") == 0)
		return pool((unsigned)atoi(argv[2]));
	return 2;
}
