/* SPDX-License-Identifier: MIT */
/*
 * doctor_cuda: checks for the driver and the runtimes, and whether the hooks reach them. See
 * doctor.h.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/tunables.h"
#include "tools/cmd/doctor.h"

static bool is_built(void)
{
	return tm_tunables_rows[TM_TUNABLE_TIERMALLOC_CUDA].built;
}

void tm_doctor_cuda_machine(void)
{
	static const char *const places[] = {
		"/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib/aarch64-linux-gnu/libcuda.so.1",
		"/usr/lib64/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"};
	const char *found = NULL;
	char text[256];
	size_t i;

	for (i = 0; i < sizeof(places) / sizeof(places[0]) && found == NULL; i++)
		if (access(places[i], R_OK) == 0)
			found = places[i];
	if (tm_doctor_read("/proc/driver/nvidia/version", text, sizeof(text))) {
		text[strcspn(text, "\n")] = '\0';
		tm_doctor_ok("GPU: %s", text);
	}
	if (found == NULL)
		return;
	if (is_built())
		tm_doctor_ok("GPU: CUDA driver '%s': calls are seen (TIERMALLOC_CUDA)", found);
	else
		tm_doctor_note("GPU: CUDA driver '%s': this build has no CUDA hooks", found);
}

void tm_doctor_cuda_program(const struct tm_elf *elf)
{
	const char *driver = tm_elf_look_needs(elf, "libcuda.so");
	const char *runtime = tm_elf_look_needs(elf, "libcudart.so");

	if (driver)
		tm_doctor_ok("program: needs the CUDA driver '%s': its calls are seen", driver);
	if (runtime)
		tm_doctor_ok("program: needs the CUDA runtime '%s': sites are those of its callers",
			     runtime);
	else if (tm_elf_look_section(elf, ".nv_fatbin") ||
		 tm_elf_look_section(elf, ".nvFatBinSegment"))
		tm_doctor_note(
			"program: carries kernels and no shared CUDA runtime, so a static one: its memory "
			"is seen, call sites are the runtime's own");
}

void tm_doctor_cuda_process(int pid, bool has_library)
{
	char path[64], line[PATH_MAX + 128], runtime[PATH_MAX] = "", driver[PATH_MAX] = "";
	unsigned drivers = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		char *at = strchr(line, '/');

		if (at == NULL)
			continue;
		at[strcspn(at, "\n")] = '\0';
		if (strstr(at, "/libcuda.so") && strcmp(driver, at) != 0) {
			snprintf(driver, sizeof(driver), "%s", at);
			drivers++;
		} else if (strstr(at, "/libcudart.so")) {
			snprintf(runtime, sizeof(runtime), "%s", at);
		}
	}
	if (file)
		fclose(file);
	if (runtime[0])
		tm_doctor_ok("process: has the CUDA runtime '%s'", runtime);
	if (drivers == 0)
		return;
	if (!has_library || !is_built())
		tm_doctor_note("process: has the CUDA driver '%s', whose calls are not seen: %s",
			       driver,
			       has_library ? "this build has no CUDA hooks"
					   : "it does not have the library");
	else if (drivers > 1)
		tm_doctor_note(
			"process: has several CUDA drivers: calls of the first one that was looked up "
			"are seen, others pass by");
	else
		tm_doctor_ok(
			"process: has the CUDA driver '%s': calls are seen, but for those of libraries "
			"that were loaded by dlmopen",
			driver);
}
