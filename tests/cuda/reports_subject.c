/* SPDX-License-Identifier: MIT */
/* run: none */
/* libs: libcuda.so.1 */
/*
 * Holds memory of every kind, each from a function that is named for it, until its standard input
 * ends. With "owner" it holds one block and writes its handle to the file "handle" for the other.
 */
#include "tests/cuda/claim.h"

#define KEEP __attribute__((noinline))

static char page[2 * 4096] __attribute__((aligned(4096)));
static CUdeviceptr kept[64];
static void *host;
static CUarray array;

/* The call must not be the last thing that a function does, else it is a jump. */
static volatile int calls;

KEEP static void hold_device(void)
{
	for (int i = 0; i < 12; i++) {
		ok(cuMemAlloc_v2(&kept[i], MIB));
		calls++;
	}
}

KEEP static void use_device(void)
{
	CUdeviceptr p;

	for (int i = 0; i < 41; i++) {
		ok(cuMemAlloc_v2(&p, 3 * MIB));
		if (calls++ < 52)
			ok(cuMemFree_v2(p));
	}
}

KEEP static void hold_managed(void)
{
	ok(cuMemAllocManaged(&kept[12], 5 * MIB, CU_MEM_ATTACH_GLOBAL));
	calls++;
}

KEEP static void hold_pinned(void)
{
	ok(cuMemHostAlloc(&host, 7 * MIB, 0));
	calls++;
}

KEEP static void hold_registered(void)
{
	ok(cuMemHostRegister_v2(page, sizeof(page), 0));
	calls++;
}

KEEP static void hold_async(void)
{
	ok(cuMemAllocAsync(&kept[13], 9 * MIB, NULL));
	calls++;
}

KEEP static void hold_chunk(void)
{
	CUmemAllocationProp prop = {.type = 1, .location = {1, 0}};
	CUmemGenericAllocationHandle handle;

	ok(cuMemCreate(&handle, 22 * MIB, &prop, 0));
	calls++;
}

KEEP static void hold_array(void)
{
	CUDA_ARRAY_DESCRIPTOR two = {256, 256, 1, 1};

	ok(cuArrayCreate_v2(&array, &two));
	calls++;
}

KEEP static void open_others(void)
{
	CUipcMemHandle handle = {0};
	FILE *f = fopen("handle", "rb");

	claim(f != NULL && fread(&handle, sizeof(handle), 1, f) == 1);
	ok(cuIpcOpenMemHandle_v2(&kept[14], handle, 1));
	calls++;
	if (f != NULL)
		fclose(f);
}

KEEP static void hold_cache(void)
{
	void *library = dlopen(claim_beside("libc10_cuda.so"), RTLD_NOW), *fn;
	int (*reserve)(CUdeviceptr *, size_t);

	claim(library != NULL, "%s", dlerror());
	fn = dlsym(library, "reserve");
	memcpy(&reserve, &fn, sizeof(fn));
	ok(reserve(&kept[15], 20 * MIB));
}

static void own(void)
{
	CUipcMemHandle handle;
	FILE *f = fopen("part", "wb");

	ok(cuMemAlloc_v2(&kept[0], 11 * MIB));
	ok(cuIpcGetMemHandle(&handle, kept[0]));
	claim(f != NULL && fwrite(&handle, sizeof(handle), 1, f) == 1);
	if (f != NULL)
		fclose(f);
	claim(rename("part", "handle") == 0);
}

int main(int argc, char **argv)
{
	char c;

	(void)argv;
	claim_context();
	if (argc > 1) {
		own();
	} else {
		hold_device();
		use_device();
		hold_managed();
		hold_pinned();
		hold_registered();
		hold_async();
		hold_chunk();
		hold_array();
		open_others();
		hold_cache();
	}
	printf("ready\n");
	fflush(stdout);
	/* Whoever allocates takes the ledger's samples. */
	while (read(0, &c, 1) > 0) {
		void *volatile p[64];

		for (size_t i = 0; i < 64; i++)
			p[i] = malloc(3000);
		for (size_t i = 0; i < 64; i++)
			free(p[i]);
	}
	return claim_end();
}
