/* SPDX-License-Identifier: MIT */
/*
 * What a framework's own cache reserved is live for the driver, and the report says whose it is; memory
 * that the program asked for itself stands beside it. Blocks of more call sites than the table has rows
 * are those of other sites, not of an address.
 */
/* libs: libcuda.so.1 */
/* preload: none */
#include "config.h"
#include "tests/cuda/claim.h"

static const char *told(const char *options)
{
	static char text[1 << 20];
	char command[PATH_MAX + 128];
	size_t length;
	FILE *pipe;
	snprintf(command, sizeof(command), "LD_PRELOAD= %s/tiermalloc report %s %d",
		 getenv("TM_BUILD"), options, getpid());
	pipe = popen(command, "r");
	length = pipe == NULL ? 0 : fread(text, 1, sizeof(text) - 1, pipe);
	text[length] = '\0';
	if (pipe != NULL)
		pclose(pipe);
	return text;
}

static int part(void)
{
	int (*reserve)(CUdeviceptr *, size_t);
	void *library = dlopen(claim_beside("libc10_cuda.so"), RTLD_NOW), *fn;
	const char *text;
	CUdeviceptr p;
	claim(library != NULL, "%s", dlerror());
	fn = dlsym(library, "reserve");
	memcpy(&reserve, &fn, sizeof(fn));
	claim_context();
	ok(reserve(&p, 20 * MIB));
	ok(cuMemAlloc_v2(&p, 2 * MIB));
	text = told("");
	claim(strstr(text, "reserved by a framework's cache") != NULL, "%s", text);
	claim(strstr(text, "libc10_cuda.so+0x") != NULL && strstr(text, "22.0") != NULL, "%s",
	      text);
	text = told("--json");
	claim(strstr(text, "cuMemAlloc, reserved by a framework's cache") != NULL);
	claim(strstr(text, "\"0x1\"") == NULL);
	return claim_end();
}

int main(int argc, char **argv)
{
	struct claim_output out;
	int status;
	(void)argv;
	if (argc > 1)
		return part();
	if (!TM_HAVE_CUDA)
		return claim_skip("built without the CUDA hooks");
	setenv("TIERMALLOC_DIR", "ledgers", 1);
	status = claim_again(getenv("TM_LIB"), "part", &out, 60);
	claim(status == 0, "%d %s", status, out.text);
	return claim_end();
}
