/* SPDX-License-Identifier: MIT */
/*
 * At exit, by any way out, and in forked children the library calls the driver no more (ucx#9345): it
 * would find it gone. Frees of the program's own that come so late get the driver's answer. A fork
 * before cuInit leaves the child free to start CUDA itself (vllm#32611).
 */
/* libs: libcuda.so.1 */
/* preload: none */
/* env: TMFAKE_STRICT=1 TIERMALLOC_REPORT=exit */
#include "tests/cuda/modes.h"

static CUdeviceptr late;
static int way;

static void last(void)
{
	CUresult rc = cuMemFree_v2(late);
	if (rc != CUDA_ERROR_DEINITIALIZED && rc != CUDA_SUCCESS)
		_exit(9);
}

static void use(void)
{
	CUdeviceptr p[6];
	void *host;
	int i;
	claim_context();
	for (i = 0; i < 6; i++)
		ok(cuMemAlloc_v2(&p[i], 3 * MIB));
	ok(cuMemHostAlloc(&host, 100000, 0));
	for (i = 1; i < 6; i++)
		ok(cuMemFree_v2(p[i]));
	ok(cuMemFreeHost(host));
	late = p[0];
}

/* The child of a parent that has started CUDA: every call is refused, none is the library's own. */
static void child_of_a_started_parent(void)
{
	CUdeviceptr p;
	int status = 0;
	uint64_t before = tmfake_calls(NULL), misuse = tmfake_misuse();
	pid_t child = fork();
	if (child == 0) {
		void *block = malloc(100000);
		free(block);
		claim(tmfake_calls(NULL) == before);
		gives(CUDA_ERROR_NOT_INITIALIZED, cuMemAlloc_v2(&p, 3 * MIB));
		gives(CUDA_ERROR_NOT_INITIALIZED, cuMemFree_v2(late));
		claim(tmfake_calls(NULL) == before + 2 && tmfake_misuse() == misuse + 2,
		      "calls: %llu", (unsigned long long)(tmfake_calls(NULL) - before));
		_exit(claim_end());
	}
	waitpid(child, &status, 0);
	claim(status == 0, "child: %x", (unsigned)status);
}

static void body(const char *mode)
{
	int status = 0;
	pid_t child = fork();
	if (child == 0) {
		use();
		_exit(claim_end());
	}
	waitpid(child, &status, 0);
	claim(status == 0, "child before cuInit: %x", (unsigned)status);
	use();
	child_of_a_started_parent();
	use();
	for (way = 0; way < 3; way++) {
		int ends[2];
		char text[4096];
		ssize_t length = 0, got;
		if (pipe(ends) != 0)
			exit(2);
		child = vfork();
		if (child == 0) {
			char number[8] = {(char)('0' + way), 0};
			dup2(ends[1], 2);
			execl("/proc/self/exe", "leaving", "way", number, (char *)NULL);
			_exit(127);
		}
		close(ends[1]);
		while ((got = read(ends[0], text + length, sizeof(text) - 1 - (size_t)length)) > 0)
			length += got;
		close(ends[0]);
		text[length] = '\0';
		waitpid(child, &status, 0);
		claim(status == 0, "way %d: status %x", way, (unsigned)status);
		/* The last way's handler frees: what that asks the driver is the program's own. */
		claim(way == 2 || strstr(text, "fake driver:") == NULL, "%s, way %d: %s", mode, way,
		      strstr(text, "fake driver:"));
	}
}

static int leave(int by)
{
	if (by == 2)
		atexit(last);
	use();
	if (by == 1)
		_exit(0);
	if (by == 2)
		exit(0);
	return claim_end();
}

int main(int argc, char **argv)
{
	if (argc > 2)
		return leave(atoi(argv[2]));
	return modes_run(argc, argv, body, MODES_ALL);
}
