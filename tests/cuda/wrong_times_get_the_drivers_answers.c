/* SPDX-License-Identifier: MIT */
/*
 * Calls before cuInit, after one that failed, without a device, from threads without a context, in exit
 * handlers and destructors behind the driver's own, with sizes at the ends of what a number holds: in every
 * mode each is answered as the bare driver answers it.
 */
/* libs: libcuda.so.1 */
/* preload: none */
#include "tests/cuda/modes.h"

#include <pthread.h>
#include <sys/wait.h>

static FILE *file;
static CUdeviceptr kept[8];
static void *host[2];
static CUstream stream;
static const char *when = "";
static int in_destructor;

#define note(call)                                                                                 \
	do {                                                                                       \
		int note_rc = (int)(call);                                                         \
		fprintf(file, "%s %s: %d\n", when, #call, note_rc);                                \
		fflush(file);                                                                      \
	} while (0)

/* One of everything that pools or the account have to do with. */
static void everything(void)
{
	size_t available, total, pitch;
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUdeviceptr p = 0;
	CUipcMemHandle ipc;
	CUcontext ctx;
	void *h = NULL;
	note(cuMemAlloc_v2(&p, 3 * MIB));
	note(cuMemFree_v2(p));
	note(cuMemAlloc_v2(&p, 256 * MIB));
	note(cuMemFree_v2(p));
	note(cuMemFree_v2(0));
	note(cuMemFree_v2(kept[0]));
	note(cuMemFree_v2(kept[0]));
	note(cuMemFreeAsync(kept[1], stream));
	note(cuMemAllocPitch_v2(&p, &pitch, 1000, 1000, 4));
	note(cuMemAllocManaged(&p, MIB, 1));
	note(cuMemAllocHost_v2(&h, 100000));
	note(cuMemFreeHost(h));
	note(cuMemFreeHost(host[0]));
	note(cuMemHostAlloc(&h, 100000, 0));
	note(cuMemAllocAsync(&p, MIB, NULL));
	note(cuMemGetInfo_v2(&available, &total));
	note(cuMemGetInfo_v2(NULL, NULL));
	note(cuMemGetAddressRange_v2(NULL, NULL, kept[2]));
	/* Of a live block, pools that cut have none to give; that is another test's. */
	if (strcmp(when, "destructor") == 0 || strcmp(when, "before cuInit") == 0)
		note(cuIpcGetMemHandle(&ipc, kept[3]));
	note(cuMemCreate(&handle, 2 * MIB, &prop, 0));
	note(cuCtxGetCurrent(&ctx));
	note(cuCtxSynchronize());
	note(cuMemFree_v2(kept[4]));
}

static void fill(void)
{
	int i;
	claim_context();
	ok(cuStreamCreate(&stream, 0));
	for (i = 0; i < 8; i++)
		ok(cuMemAlloc_v2(&kept[i], 3 * MIB));
	for (i = 0; i < 2; i++)
		ok(cuMemHostAlloc(&host[i], 100000, 0));
	/* Something that pools hold. */
	ok(cuMemFree_v2(kept[6]));
	ok(cuMemFree_v2(kept[7]));
	ok(cuMemFreeHost(host[1]));
}

static void sizes(void)
{
	static const size_t s[] = {SIZE_MAX,
				   SIZE_MAX - 1,
				   SIZE_MAX - 511,
				   SIZE_MAX - 512,
				   SIZE_MAX - 2 * MIB,
				   SIZE_MAX - 2 * MIB + 1,
				   (size_t)1 << 63,
				   ((size_t)1 << 63) - 1,
				   ((size_t)1 << 32) * 2 * MIB,
				   ((size_t)1 << 28) * 2 * MIB,
				   ((size_t)1 << 32) - 1,
				   (size_t)1 << 40,
				   0};
	CUdeviceptr p;
	size_t i, pitch;
	void *h;
	for (i = 0; i < sizeof(s) / sizeof(s[0]); i++) {
		bool large = s[i] == 0 || s[i] > ((size_t)1 << 33);
		note(cuMemAllocPitch_v2(&p, &pitch, s[i], 1, 4));
		note(cuMemAllocPitch_v2(&p, &pitch, 1000, s[i], 4));
		if (large) {
			note(cuMemAlloc_v2(&p, s[i]));
			note(cuMemAllocManaged(&p, s[i], 1));
			note(cuMemAllocHost_v2(&h, s[i]));
			note(cuMemHostAlloc(&h, s[i], 0));
			note(cuMemAllocAsync(&p, s[i], stream));
			note(cuMemHostRegister_v2(&file, s[i], 0));
		}
	}
	note(cuMemAlloc_v2(&p, 3 * MIB));
	note(cuMemFree_v2(p));
	note(cuMemFree_v2(SIZE_MAX));
	note(cuMemFree_v2((CUdeviceptr)1 << 63));
	note(cuMemFreeHost((void *)SIZE_MAX));
}

static void *on_a_thread(void *own_context)
{
	CUdeviceptr p = 0;
	CUcontext ctx;
	if (own_context != NULL) {
		note(cuDevicePrimaryCtxRetain(&ctx, 0));
		note(cuCtxSetCurrent(ctx));
	}
	note(cuMemFree_v2(kept[0]));
	note(cuMemFree_v2(kept[0]));
	note(cuMemFreeHost(host[0]));
	note(cuMemAlloc_v2(&p, 3 * MIB));
	note(cuMemFreeAsync(kept[1], NULL));
	return NULL;
}

static void at_exit(void)
{
	when = "exit handler";
	everything();
}

static void __attribute__((destructor)) at_the_end(void)
{
	if (in_destructor == 0)
		return;
	when = "destructor";
	everything();
	fclose(file);
}

static void body(int part)
{
	pthread_t thread;
	int i;
	switch (part) {
	case 0:
		when = "before cuInit";
		everything();
		fill();
		when = "after it";
		everything();
		break;
	case 1: /* TMFAKE_FAIL: the first one fails */
		note(cuInit(0));
		when = "after a failure";
		everything();
		fill();
		when = "after a success";
		everything();
		break;
	case 2: /* no device */
		note(cuInit(0));
		everything();
		break;
	case 3:
		fill();
		sizes();
		break;
	case 4:
		fill();
		for (i = 0; i < 2; i++) {
			when = i == 0 ? "no context" : "its own";
			claim(pthread_create(&thread, NULL, on_a_thread, i == 0 ? NULL : &file) ==
			      0);
			pthread_join(thread, NULL);
		}
		break;
	default: /* exit handlers of before and behind the driver's */
		if (part == 5)
			atexit(at_exit);
		fill();
		if (part == 6)
			atexit(at_exit);
		in_destructor = 1;
	}
}

static void each(const char *mode)
{
	static const char *const devices[] = {"1", "1", "0", "1", "1", "1", "1"};
	char self[PATH_MAX], name[64], number[8], command[256];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int part, status;
	self[length < 0 ? 0 : length] = '\0';
	for (part = 0; part < 7; part++) {
		pid_t child;
		snprintf(number, sizeof(number), "%d", part);
		snprintf(name, sizeof(name), "%s.%d", mode, part);
		setenv("TMFAKE_DEVICES", devices[part], 1);
		if (part == 1)
			setenv("TMFAKE_FAIL", "cuInit:1:999", 1);
		else
			unsetenv("TMFAKE_FAIL");
		child = vfork();
		if (child == 0) {
			execl(self, "part", name, number, (char *)NULL);
			_exit(127);
		}
		waitpid(child, &status, 0);
		claim(status == 0, "%s: %x", name, (unsigned)status);
		snprintf(command, sizeof(command), "diff bare.%d '%s' && test -s '%s'", part, name,
			 name);
		claim(system(command) == 0, "%s", name);
	}
}

int main(int argc, char **argv)
{
	if (argc > 2) {
		file = fopen(argv[1], "we");
		if (file == NULL)
			return 2;
		body(atoi(argv[2]));
		return claim_end();
	}
	return modes_run(argc, argv, each, MODES_ALL);
}
