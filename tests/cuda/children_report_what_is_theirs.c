/* SPDX-License-Identifier: MIT */
/*
 * Device memory is its process's: the report of a child that was forked after CUDA had started has no line
 * about it, neither of blocks nor of what the parent's pools hold.
 */
/* libs: libcuda.so.1 */
/* preload: none */
/* env: TIERMALLOC_REPORT=exit */
#include "tests/cuda/modes.h"

static void use(void)
{
	CUdeviceptr p[6];
	void *host;
	int i, turn;
	claim_context();
	for (turn = 0; turn < 20; turn++) {
		ok(cuMemHostAlloc(&host, 100000, 0));
		for (i = 0; i < 6; i++)
			ok(cuMemAlloc_v2(&p[i], 3 * MIB));
		for (i = 0; i < 6; i++)
			ok(cuMemFree_v2(p[i]));
		ok(cuMemFreeHost(host));
	}
	ok(cuMemAlloc_v2(&p[0], 3 * MIB));
}

static void body(const char *mode)
{
	char text[16384];
	size_t length = 0;
	int ends[2], status = 0;
	ssize_t got;
	pid_t child;
	use();
	if (pipe(ends) != 0)
		exit(2);
	fflush(NULL);
	child = fork();
	if (child == 0) {
		dup2(ends[1], 2);
		close(ends[0]);
		exit(0);
	}
	close(ends[1]);
	while (length < sizeof(text) - 1 &&
	       (got = read(ends[0], text + length, sizeof(text) - 1 - length)) > 0)
		length += (size_t)got;
	close(ends[0]);
	text[length] = '\0';
	waitpid(child, &status, 0);
	claim(status == 0, "%s: child %x", mode, (unsigned)status);
	claim(strstr(text, "report of process") != NULL, "%s: %s", mode, text);
	claim(strstr(text, "CUDA") == NULL && strstr(text, "GPU") == NULL, "%s: %s", mode,
	      strstr(text, "CUDA"));
}

int main(int argc, char **argv)
{
	return modes_run(argc, argv, body, MODE_OBSERVE | MODE_AUTO | MODES_POOL | MODE_EVENT);
}
