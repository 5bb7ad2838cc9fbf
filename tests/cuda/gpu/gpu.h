/* SPDX-License-Identifier: MIT */
/*
 * gpu: what the programs of this folder share. They run on a real device and, for rehearsal, on the
 * fake one: kernels are PTX here and built into the fake driver under the same names. Each result is a
 * line of JSON; "ok" is true, false, or null where a fact is recorded and nothing is judged.
 */
#ifndef TM_TEST_GPU_H
#define TM_TEST_GPU_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/cuda/cu.h"

#define MIB ((size_t)1 << 20)
#define GPU_OK "true"
#define GPU_BAD "false"
#define GPU_FACT "null"

static int gpu_failures;

static const char gpu_ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry tm_spin(.param .u64 ns)\n{\n"
	"\t.reg .pred %p<2>;\n\t.reg .b64 %rd<4>;\n"
	"\tld.param.u64 %rd1, [ns];\n\tmov.u64 %rd2, %globaltimer;\n\tadd.u64 %rd1, %rd1, %rd2;\n"
	"W: mov.u64 %rd2, %globaltimer;\n\tsetp.lt.u64 %p1, %rd2, %rd1;\n\t@%p1 bra W;\n\tret;\n}\n"
	".visible .entry tm_fill(.param .u64 to, .param .u64 words, .param .u32 value, .param .u64 ns)\n{\n"
	"\t.reg .pred %p<3>;\n\t.reg .b32 %r<8>;\n\t.reg .b64 %rd<10>;\n"
	"\tld.param.u64 %rd1, [to];\n\tld.param.u64 %rd2, [words];\n\tld.param.u32 %r1, [value];\n"
	"\tld.param.u64 %rd3, [ns];\n\tcvta.to.global.u64 %rd1, %rd1;\n"
	"\tmov.u64 %rd4, %globaltimer;\n\tadd.u64 %rd4, %rd4, %rd3;\n"
	"W: mov.u64 %rd5, %globaltimer;\n\tsetp.lt.u64 %p1, %rd5, %rd4;\n\t@%p1 bra W;\n"
	"\tmov.u32 %r2, %ctaid.x;\n\tmov.u32 %r3, %ntid.x;\n\tmov.u32 %r4, %tid.x;\n"
	"\tmad.lo.u32 %r5, %r2, %r3, %r4;\n\tmov.u32 %r6, %nctaid.x;\n\tmul.lo.u32 %r7, %r6, %r3;\n"
	"\tcvt.u64.u32 %rd6, %r5;\n\tcvt.u64.u32 %rd7, %r7;\n"
	"L: setp.ge.u64 %p2, %rd6, %rd2;\n\t@%p2 bra D;\n\tshl.b64 %rd8, %rd6, 2;\n"
	"\tadd.u64 %rd9, %rd1, %rd8;\n\tst.global.u32 [%rd9], %r1;\n\tadd.u64 %rd6, %rd6, %rd7;\n\tbra L;\n"
	"D: ret;\n}\n";

static CUfunction gpu_fill_fn, gpu_spin_fn;

/* {"step": ..., "case": ..., "ok": ..., and what the format says: more keys, with a leading comma}. */
__attribute__((unused, format(printf, 4, 5))) static void
gpu_line(const char *step, const char *ok, const char *what, const char *fmt, ...)
{
	char more[1024];
	va_list args;
	va_start(args, fmt);
	vsnprintf(more, sizeof(more), fmt, args);
	va_end(args);
	printf("{\"step\": \"%s\", \"case\": \"%s\", \"ok\": %s%s}\n", step, what, ok, more);
	fflush(stdout);
	gpu_failures += strcmp(ok, GPU_BAD) == 0;
}

#define GPU_NEED(step, call)                                                                       \
	do {                                                                                       \
		CUresult need_rc = (call);                                                         \
		if (need_rc != CUDA_SUCCESS) {                                                     \
			gpu_line(step, GPU_BAD, "needed call", ", \"call\": \"%s\", \"rc\": %d",   \
				 #call, need_rc);                                                  \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

__attribute__((unused)) static uint64_t gpu_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A device, its primary context, the kernels. */
__attribute__((unused)) static CUcontext gpu_begin(const char *step)
{
	CUcontext ctx;
	CUmodule module;
	GPU_NEED(step, cuInit(0));
	GPU_NEED(step, cuDevicePrimaryCtxRetain(&ctx, 0));
	GPU_NEED(step, cuCtxSetCurrent(ctx));
	GPU_NEED(step, cuModuleLoadData(&module, gpu_ptx));
	GPU_NEED(step, cuModuleGetFunction(&gpu_fill_fn, module, "tm_fill"));
	GPU_NEED(step, cuModuleGetFunction(&gpu_spin_fn, module, "tm_spin"));
	return ctx;
}

/* Waits ns, then writes value to count words. */
__attribute__((unused)) static CUresult gpu_fill(CUstream stream, CUdeviceptr at, uint32_t value,
						 size_t count, uint64_t ns)
{
	uint64_t words = count;
	void *params[] = {&at, &words, &value, &ns};
	return cuLaunchKernel(gpu_fill_fn, 32, 1, 1, 128, 1, 1, 0, stream, params, NULL);
}

__attribute__((unused)) static CUresult gpu_spin(CUstream stream, uint64_t ns)
{
	void *params[] = {&ns};
	return cuLaunchKernel(gpu_spin_fn, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}

/* How many words differ from value, after what the stream did. */
__attribute__((unused)) static size_t gpu_wrong(CUdeviceptr at, uint32_t value, size_t words)
{
	uint32_t *copy = malloc(words * 4);
	size_t i, wrong = 0;
	if (copy == NULL || cuMemcpyDtoH_v2(copy, at, words * 4) != CUDA_SUCCESS) {
		free(copy);
		return words;
	}
	for (i = 0; i < words; i++)
		wrong += copy[i] != value;
	free(copy);
	return wrong;
}

__attribute__((unused)) static int gpu_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

/* TM_GPU_QUICK: the rehearsal, a tenth of the rounds. */
__attribute__((unused)) static unsigned gpu_rounds(unsigned full)
{
	return getenv("TM_GPU_QUICK") == NULL ? full : full < 10 ? 1 : full / 10;
}

#endif
