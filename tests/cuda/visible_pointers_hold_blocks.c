/* SPDX-License-Identifier: MIT */
/*
 * Blocks whose only pointers lie in memory that devices see are no leaks: pinned host memory, managed
 * memory, host memory that the program registered itself. Blocks that nothing points to are, beside
 * them. The mappings are shared ones, as a driver's device file gives them.
 */
/* libs: libcuda.so.1 */
/* preload: none */
#include "config.h"
#include "tests/cuda/claim.h"

#include <sys/mman.h>

#define BLOCKS 64
#define BYTES 4321

#define NI __attribute__((noinline))

/* Below every frame that held one of the pointers. */
static NI void wipe_stack(void)
{
	volatile char wipe[32768];
	size_t i;
	for (i = 0; i < sizeof(wipe); i++)
		wipe[i] = 0;
}

static NI void fill(void **place)
{
	int i;
	for (i = 0; i < BLOCKS; i++)
		place[i] = calloc(1, BYTES);
}

static NI void keep_pinned(void)
{
	void *host;
	ok(cuMemAllocHost_v2(&host, BLOCKS * sizeof(void *)));
	fill(host);
}

static NI void keep_managed(void)
{
	CUdeviceptr at;
	ok(cuMemAllocManaged(&at, BLOCKS * sizeof(void *), CU_MEM_ATTACH_GLOBAL));
	fill((void **)(uintptr_t)at);
}

static NI void keep_registered(void)
{
	void *at = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ok(cuMemHostRegister_v2(at, 8192, 0));
	fill(at);
}

/* A mapping like these that no device sees. */
static NI void keep_elsewhere(void)
{
	fill(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
}

/* Blocks that are said to be unreachable, by the tool. */
static long unreachable(void)
{
	static char text[1 << 20];
	char command[PATH_MAX + 64];
	size_t length;
	FILE *pipe;
	char *at, *total;
	snprintf(command, sizeof(command), "%s/tiermalloc leaks %d --json", getenv("TM_BUILD"),
		 getpid());
	unsetenv("LD_PRELOAD");
	pipe = popen(command, "r");
	length = pipe == NULL ? 0 : fread(text, 1, sizeof(text) - 1, pipe);
	text[length] = '\0';
	if (pipe == NULL || pclose(pipe) < 0)
		return -1;
	long sum = 0;
	for (at = text; (at = strstr(at, "\"class\":\"unreachable\"")) != NULL; at++) {
		total = strstr(at, "\"direct_objs\":");
		sum += total == NULL ? 0 : strtol(total + 14, NULL, 10);
	}
	return length == 0 ? -1 : sum;
}

static int part(const char *kind)
{
	long lost;
	claim_context();
	if (strcmp(kind, "device") == 0) {
		keep_pinned();
		keep_managed();
		keep_registered();
	} else {
		keep_elsewhere();
	}
	wipe_stack();
	usleep(1500000);
	lost = unreachable();
	printf("%s: %ld unreachable\n", kind, lost);
	if (strcmp(kind, "device") == 0)
		claim(lost >= 0 && lost < 8, "%ld", lost);
	else
		claim(lost > BLOCKS - 8, "%ld", lost);
	return claim_end();
}

int main(int argc, char **argv)
{
	static const char *const kinds[] = {"device", "elsewhere"};
	size_t i;
	if (argc > 1)
		return part(argv[1]);
	if (!TM_HAVE_CUDA)
		return claim_skip("built without the CUDA hooks");
	setenv("TIERMALLOC_DIR", "ledgers", 1);
	setenv("TIERMALLOC_LEAK_WINDOW_MS", "300", 1);
	for (i = 0; i < 2; i++) {
		struct claim_output out;
		int status = claim_again(getenv("TM_LIB"), kinds[i], &out);
		printf("%s", out.text);
		claim(status == 0, "%s: %d", kinds[i], status);
	}
	return claim_end();
}
