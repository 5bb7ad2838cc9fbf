/* SPDX-License-Identifier: MIT */
/*
 * seen: what the library believes. The rows about CUDA of its own report, read while the program
 * runs, and whose function an address is.
 */
#ifndef TM_TEST_CUDA_SEEN_H
#define TM_TEST_CUDA_SEEN_H

#include "config.h"
#include "tests/cuda/claim.h"

#include <sys/mman.h>

/* The report of this moment; "" without the library. */
__attribute__((unused)) static const char *seen_report(void)
{
	static char text[65536];
	int (*report)(int, const char *);
	void *fn = dlsym(RTLD_DEFAULT, "tiermalloc_report");
	int fd = memfd_create("report", MFD_CLOEXEC);
	ssize_t length = 0;
	memcpy(&report, &fn, sizeof(fn));
	if (fn != NULL && fd >= 0 && report(fd, "exit") == 0)
		length = pread(fd, text, sizeof(text) - 1, 0);
	text[length < 0 ? 0 : length] = '\0';
	if (fd >= 0)
		close(fd);
	return text;
}

/* Blocks of one kind ("device", "pinned host", ...) on one device; -1: no such row. */
__attribute__((unused)) static long seen_blocks(int device, const char *kind)
{
	const char *text = seen_report(), *line, *end;
	char row[64];
	size_t length = (size_t)snprintf(row, sizeof(row), "  GPU %d %s", device, kind);
	for (line = text; *line != '\0'; line = end + 1) {
		end = strchr(line, '\n');
		if (end == NULL)
			break;
		if (strncmp(line, row, length) == 0 && line[length] == ' ') {
			const char *last = end;
			while (last > line && last[-1] != ' ')
				last--;
			return strtol(last, NULL, 10);
		}
	}
	return -1;
}

/* Name of the file that holds this function, without its folder. */
__attribute__((unused)) static const char *seen_owner(const void *fn)
{
	Dl_info info;
	const char *slash;
	if (fn == NULL || dladdr(fn, &info) == 0 || info.dli_fname == NULL)
		return "";
	slash = strrchr(info.dli_fname, '/');
	return slash ? slash + 1 : info.dli_fname;
}

__attribute__((unused)) static bool seen_ours(const void *fn)
{
	return strcmp(seen_owner(fn), "libtiermalloc.so") == 0;
}

/* Is this export of the driver one that the library replaces? */
__attribute__((unused)) static bool seen_hooked(const char *export)
{
	static const char *const names[] = {
#define D(symbol, ...) #symbol,
#include "shim/base/cuda_api.def"
	};
	size_t i;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], export) == 0)
			return true;
	return false;
}

/* What the command tells of this process, which has a ledger. */
__attribute__((unused)) static const char *seen_told(const char *options)
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

/* Starts the program again under the library with a ledger, where it is the part. */
__attribute__((unused)) static int seen_with_ledger(int argc, int (*part)(void))
{
	struct claim_output out;
	int status;
	if (argc > 1)
		return part();
	if (!TM_HAVE_CUDA)
		return claim_skip("built without the CUDA hooks");
	setenv("TIERMALLOC_DIR", "ledgers", 1);
	status = claim_again(getenv("TM_LIB"), "part", &out);
	claim(status == 0, "%d %s", status, out.text);
	return claim_end();
}

#define SEEN_NEEDS_HOOKS()                                                                         \
	do {                                                                                       \
		if (!TM_HAVE_CUDA)                                                                 \
			return claim_skip("built without the CUDA hooks");                         \
	} while (0)

#endif
