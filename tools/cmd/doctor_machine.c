/* SPDX-License-Identifier: MIT */
/* doctor_machine: kernel settings and limits that affect the library. See doctor.h. */
#include <gnu/libc-version.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "shim/base/fmt.h"
#include "shim/base/tunables.h"
#include "tools/cmd/doctor.h"
#include "tools/library.h"

#define THP "/sys/kernel/mm/transparent_hugepage/"

static const char *bytes(uint64_t value)
{
	static char text[4][32];
	static unsigned int next;
	char *buf = text[next++ % 4];

	tm_fmt_bytes(buf, sizeof(text[0]), value);
	return buf;
}

static void check_system(void)
{
	struct utsname name;

	if (uname(&name) == 0)
		tm_doctor_ok("system: Linux %s on %s, glibc %s", name.release, name.machine,
			     gnu_get_libc_version());
}

/* The selected word, in brackets, of a sysfs file; false if the file does not exist. */
static bool chosen(const char *path, char *buf, size_t size)
{
	char text[256];
	char *open, *close;

	if (!tm_doctor_read(path, text, sizeof(text)))
		return false;
	open = strchr(text, '[');
	close = open ? strchr(open, ']') : NULL;
	if (close == NULL)
		return false;
	*close = '\0';
	snprintf(buf, size, "%s", open + 1);
	return true;
}

static void check_huge_pages(void)
{
	char mode[32] = "", defrag[32] = "";

	if (!chosen(THP "enabled", mode, sizeof(mode))) {
		tm_doctor_note(
			"huge pages: the kernel has no transparent huge pages, or /sys is not mounted");
		return;
	}
	chosen(THP "defrag", defrag, sizeof(defrag));
	if (strcmp(mode, "never") == 0)
		tm_doctor_note(
			"huge pages: switched off, for the speed of large blocks: echo madvise > " THP
			"enabled");
	else if (strcmp(mode, "always") == 0)
		tm_doctor_note(
			"huge pages: on for all memory: also where the library does not ask for them, "
			"resident memory may be larger");
	else
		tm_doctor_ok(
			"huge pages: %s, defrag %s: the library asks for them where it fills memory",
			mode, defrag[0] ? defrag : "?");
}

static void check_pool(const char *size, const char *folder)
{
	char path[128];
	uint64_t total = 0, unused = 0;

	snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/%s/nr_hugepages", folder);
	if (!tm_doctor_read_number(path, &total) || total == 0)
		return;
	snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/%s/free_hugepages", folder);
	tm_doctor_read_number(path, &unused);
	tm_doctor_ok("huge pages: pool of %s: %llu free of %llu", size, (unsigned long long)unused,
		     (unsigned long long)total);
}

static void check_overcommit(void)
{
	uint64_t mode;

	if (!tm_doctor_read_number("/proc/sys/vm/overcommit_memory", &mode))
		return;
	if (mode == 2)
		tm_doctor_note(
			"overcommit: strict (2): the library maps in small steps, mind CommitLimit in "
			"/proc/meminfo");
	else
		tm_doctor_ok("overcommit: %s", mode ? "always (1)" : "heuristic (0)");
}

static void check_maps(void)
{
	uint64_t most;

	if (!tm_doctor_read_number("/proc/sys/vm/max_map_count", &most))
		return;
	if (most < 65530)
		tm_doctor_note("mappings: vm.max_map_count is %llu, below the usual 65530",
			       (unsigned long long)most);
	else
		tm_doctor_ok("mappings: vm.max_map_count is %llu", (unsigned long long)most);
}

static void check_limits(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		tm_doctor_note("limits: address space %s (ulimit -v): requests beyond it fail",
			       bytes(limit.rlim_cur));
	if (getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		tm_doctor_note(
			"limits: data %s (ulimit -d) counts private memory: requests beyond it fail",
			bytes(limit.rlim_cur));
	if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		tm_doctor_note(
			"limits: locked memory %s (ulimit -l): a program that locks all its memory gets no "
			"more, and locked pages cannot be given back",
			bytes(limit.rlim_cur));
}

/* Smallest limit in "file" from this cgroup up to the root; 0: none. */
static uint64_t limit_upwards(const char *root, const char *group, const char *file)
{
	char folder[1024], path[1200];
	uint64_t smallest = 0, value;

	snprintf(folder, sizeof(folder), "%s", group);
	for (;;) {
		char *slash;

		snprintf(path, sizeof(path), "%s%s/%s", root, folder, file);
		if (tm_doctor_read_number(path, &value) && value < UINT64_C(1) << 62 &&
		    (smallest == 0 || value < smallest))
			smallest = value;
		slash = strrchr(folder, '/');
		if (slash == NULL)
			return smallest;
		*slash = '\0';
	}
}

static void check_cgroup(void)
{
	char line[1024];
	uint64_t smallest = 0, value;
	FILE *file = fopen("/proc/self/cgroup", "re");

	while (file && fgets(line, sizeof(line), file)) {
		char *group = strchr(line, ':');
		char *path = group ? strchr(group + 1, ':') : NULL;

		line[strcspn(line, "\n")] = '\0';
		if (path == NULL)
			continue;
		*path++ = '\0';
		value = 0;
		if (group[1] == '\0')
			value = limit_upwards("/sys/fs/cgroup", path, "memory.max");
		else if (strstr(group, "memory"))
			value = limit_upwards("/sys/fs/cgroup/memory", path,
					      "memory.limit_in_bytes");
		if (value && (smallest == 0 || value < smallest))
			smallest = value;
	}
	if (file)
		fclose(file);
	if (smallest)
		tm_doctor_note("cgroup: limit %s, beyond which the kernel ends processes",
			       bytes(smallest));
	else
		tm_doctor_ok("cgroup: no memory limit");
}

static void check_cpus(void)
{
	cpu_set_t set;
	uint64_t nodes = 0;
	char path[64];

	while (nodes < 1024) {
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%llu",
			 (unsigned long long)nodes);
		if (access(path, F_OK) != 0)
			break;
		nodes++;
	}
	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		tm_doctor_ok("processors: %d of %ld may be used, %llu memory node%s",
			     CPU_COUNT(&set), sysconf(_SC_NPROCESSORS_ONLN),
			     (unsigned long long)(nodes ? nodes : 1), nodes > 1 ? "s" : "");
}

static void check_places(void)
{
	struct statvfs fs;

	if (!tm_tunables_rows[TM_TUNABLE_TIERMALLOC_DIR].built)
		return;
	if (statvfs("/dev/shm", &fs) != 0) {
		tm_doctor_note(
			"ledgers: /dev/shm is not there, set TIERMALLOC_DIR to a folder in memory");
		return;
	}
	if ((uint64_t)fs.f_bavail * fs.f_frsize < 64 << 20)
		tm_doctor_note("ledgers: only %s left in /dev/shm (in a container: --shm-size)",
			       bytes((uint64_t)fs.f_bavail * fs.f_frsize));
	else
		tm_doctor_ok("ledgers: %s left in /dev/shm",
			     bytes((uint64_t)fs.f_bavail * fs.f_frsize));
}

static void check_system_preload(void)
{
	char text[1024];

	if (!tm_doctor_read("/etc/ld.so.preload", text, sizeof(text)))
		return;
	if (tm_library_rival(text))
		tm_doctor_note(
			"/etc/ld.so.preload holds an allocator ('%s'): LD_PRELOAD goes before it",
			text);
	else
		tm_doctor_note("/etc/ld.so.preload loads '%s' into every program", text);
}

static void check_seccomp_and_scope(void)
{
	uint64_t scope;

	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) > 0)
		tm_doctor_note(
			"seccomp: this shell runs under a filter, as in a container: what it "
			"starts has no helper thread, the program's own calls give memory back");
	if (tm_doctor_read_number("/proc/sys/kernel/yama/ptrace_scope", &scope) && scope > 1)
		tm_doctor_note("yama: ptrace_scope is %llu: other processes cannot be looked at",
			       (unsigned long long)scope);
}

void tm_doctor_machine(struct tm_doctor *doctor)
{
	(void)doctor;
	check_system();
	check_cpus();
	check_huge_pages();
	check_pool("2M", "hugepages-2048kB");
	check_pool("1G", "hugepages-1048576kB");
	check_overcommit();
	check_maps();
	check_limits();
	check_cgroup();
	check_places();
	check_seccomp_and_scope();
	check_system_preload();
	tm_doctor_cuda_machine();
}
