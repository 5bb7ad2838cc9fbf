/* SPDX-License-Identifier: MIT */
/*
 * trace kv|mix    H9: 15,000 allocations of the shapes of traces_meet_their_figures, scaled to most of
 *                 the device: fragmentation, failures, time in allocations and frees
 * trace grow      H10: a buffer that grows by a little, 2000 steps
 * trace weights   H10: a model's weights, 300 blocks of 16 to 512 MiB, once and again
 */
#include "tests/cuda/gpu/gpu.h"

#include <math.h>

#define SLOTS 4096

static CUdeviceptr at[SLOTS];
static size_t live[SLOTS];
static uint64_t state = 42;

static double uniform(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (double)(state >> 11) / 9007199254740992.0;
}

static size_t draw(bool kv)
{
	double tokens;
	if (!kv)
		return (size_t)exp(log(4096) + uniform() * log(131072)) & ~(size_t)511;
	tokens = exp(6.9 +
		     0.9 * sqrt(-2 * log(uniform() + 1e-12)) * cos(6.283185307179586 * uniform()));
	tokens = tokens < 16 ? 16 : tokens > 16384 ? 16384 : tokens;
	return ((size_t)tokens * 16384 + 2 * MIB - 1) & ~(2 * MIB - 1);
}

static const char *mode(void)
{
	return getenv("TM_GPU_MODE") ? getenv("TM_GPU_MODE") : "bare";
}

static int churn(const char *name)
{
	bool kv = strcmp(name, "kv") == 0;
	size_t free_bytes, total, sum = 0, peak = 0, least, target, failures = 0,
				  steps = gpu_rounds(15000), i;
	unsigned slots = 0;
	uint64_t ns = 0, start;
	gpu_begin("H9");
	GPU_NEED("H9", cuMemGetInfo_v2(&free_bytes, &total));
	least = free_bytes;
	/* As many slots as fill two thirds of what is free, on the average. */
	target = free_bytes / 3 * 2;
	for (sum = 0; slots < SLOTS && sum < target; slots++)
		sum += draw(kv);
	for (sum = 0, i = 0; i < steps; i++) {
		unsigned slot = (unsigned)(uniform() * slots);
		size_t bytes = draw(kv), now;
		CUresult rc;
		start = gpu_now_ns();
		if (at[slot] != 0) {
			GPU_NEED("H9", cuMemFree_v2(at[slot]));
			sum -= live[slot];
			at[slot] = 0;
		}
		rc = cuMemAlloc_v2(&at[slot], bytes);
		ns += gpu_now_ns() - start;
		if (rc != CUDA_SUCCESS) {
			failures++;
			at[slot] = 0;
			continue;
		}
		live[slot] = bytes;
		sum += bytes;
		peak = sum > peak ? sum : peak;
		if (i % 64 == 0) {
			GPU_NEED("H9", gpu_fill(NULL, at[slot], 1, 256, 1000));
			/* What the device itself says: TM_GPU_USED is the file of another process's look. */
			cuMemGetInfo_v2(&now, NULL);
			least = now < least ? now : least;
		}
	}
	gpu_line(
		"H9", failures == 0 ? GPU_OK : GPU_BAD, name,
		", \"mode\": \"%s\", \"slots\": %u, \"peak_live\": %zu, \"least_free\": %zu, \"failures\": %zu, "
		"\"total_ms\": %.1f, \"per_step_us\": %.2f",
		mode(), slots, peak, least, failures, (double)ns / 1e6,
		(double)ns / 1e3 / (double)steps);
	return gpu_failures != 0;
}

static int grow(void)
{
	CUdeviceptr p = 0, next;
	size_t bytes = 8 * MIB, i, steps = gpu_rounds(2000);
	uint64_t start;
	gpu_begin("H10");
	start = gpu_now_ns();
	for (i = 0; i < steps; i++) {
		bytes += i % 4 ? 256 : 65536;
		GPU_NEED("H10", cuMemAlloc_v2(&next, bytes));
		GPU_NEED("H10", gpu_fill(NULL, next, 1, 256, 1000));
		if (p != 0)
			GPU_NEED("H10", cuMemFree_v2(p));
		p = next;
	}
	gpu_line("H10", GPU_OK, "grow", ", \"mode\": \"%s\", \"steps\": %zu, \"total_ms\": %.1f",
		 mode(), steps, (double)(gpu_now_ns() - start) / 1e6);
	return gpu_failures != 0;
}

static int weights(void)
{
	size_t free_bytes, total, sum, n, i;
	unsigned load;
	uint64_t start;
	gpu_begin("H10");
	GPU_NEED("H10", cuMemGetInfo_v2(&free_bytes, &total));
	for (load = 0; load < 2; load++) {
		start = gpu_now_ns();
		for (n = 0, sum = 0; n < 300 && sum < free_bytes / 2; n++) {
			size_t bytes = (size_t)(16 * exp(uniform() * log(32))) * MIB;
			GPU_NEED("H10", cuMemAlloc_v2(&at[n], bytes));
			sum += bytes;
		}
		gpu_line(
			"H10", GPU_OK, "weights",
			", \"mode\": \"%s\", \"load\": %u, \"blocks\": %zu, \"bytes\": %zu, \"ms\": %.2f",
			mode(), load, n, sum, (double)(gpu_now_ns() - start) / 1e6);
		for (i = 0; i < n; i++)
			GPU_NEED("H10", cuMemFree_v2(at[i]));
	}
	return gpu_failures != 0;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	if (strcmp(argv[1], "grow") == 0)
		return grow();
	if (strcmp(argv[1], "weights") == 0)
		return weights();
	return churn(argv[1]);
}
