/* SPDX-License-Identifier: MIT */
/* doctor_program: checks a program's file, and a running process. See doctor.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/base/fmt.h"
#include "shim/base/parse.h"
#include "tools/cmd.h"
#include "tools/cmd/doctor.h"
#include "tools/cmd/program.h"
#include "tools/elf_look.h"
#include "tools/library.h"

static void print_findings(struct tm_doctor *doctor, const struct tm_program *program)
{
	if (program->interpreted[0])
		tm_doctor_ok("script: '%s' is run by '%s'", program->interpreted, program->path);
	for (size_t i = 0; i < program->count; i++) {
		const struct tm_finding *finding = &program->findings[i];

		if (finding->reach == TM_REACH_NOTE)
			tm_doctor_note("program: %s", finding->text);
		else
			tm_doctor_problem(doctor, "program: %s", finding->text);
	}
	if (tm_program_reach(program) <= TM_REACH_NOTE)
		tm_doctor_ok("program: '%s' can be served", program->path);
}

/* Notes the consequences of how a program finds its plug-ins. */
static void note_plugins(const char *path)
{
	struct tm_elf elf;

	if (tm_elf_look_open(&elf, path) == 0 && elf.kind == TM_ELF_64) {
		tm_doctor_cuda_program(&elf);
		if (tm_elf_look_imports(&elf, "dlmopen"))
			tm_doctor_note(
				"program: uses dlmopen: libraries in other namespaces have a C library and "
				"malloc of their own");
		else if (tm_elf_look_imports(&elf, "dlopen"))
			tm_doctor_note(
				"program: loads libraries itself: RTLD_DEEPBIND is dropped from dlopen "
				"(TIERMALLOC_DEEPBIND=keep leaves it)");
	}
	tm_elf_look_close(&elf);
}

int tm_doctor_program(struct tm_doctor *doctor, const char *command)
{
	struct tm_program program;
	struct stat st;
	int err = tm_program_look(&program, command);

	if (err && stat(command, &st) == 0 && S_ISDIR(st.st_mode))
		return tm_say_usage("doctor: '%s' is a folder, not a program", command);
	if (err && strchr(command, '/') == NULL && access(command, F_OK) == 0)
		return tm_say_usage(
			"doctor: '%s' is no command, but a file here: './%s', if it can be run",
			command, command);
	if (err)
		return tm_say_usage("doctor: '%s' cannot be examined: %s", command, strerror(-err));
	print_findings(doctor, &program);
	note_plugins(program.path);
	return 0;
}

/* --- a process ---------------------------------------------------------------------------------- */

struct maps {
	size_t count;
	bool ours;
	bool other_copy; /* another libtiermalloc.so than ours */
	char ours_path[PATH_MAX];
	char rival[PATH_MAX];
	char sanitizer[64];
};

static void read_map_line(struct maps *maps, const char *library, char *line)
{
	char *path = strchr(line, '/');
	const char *rival;

	maps->count++;
	if (path == NULL)
		return;
	path[strcspn(path, "\n")] = '\0';
	if (strstr(path, "/" TM_LIBRARY_NAME)) {
		maps->ours = true;
		maps->other_copy |= strcmp(path, library) != 0;
		snprintf(maps->ours_path, sizeof(maps->ours_path), "%s", path);
	}
	rival = tm_library_rival(path);
	if (rival && strstr(rival, "san"))
		snprintf(maps->sanitizer, sizeof(maps->sanitizer), "%s", rival);
	else if (rival)
		snprintf(maps->rival, sizeof(maps->rival), "%s", path);
}

static int read_maps(struct maps *ret_maps, int pid, const char *library)
{
	char path[64], line[PATH_MAX + 128];
	FILE *file;
	int err;

	*ret_maps = (struct maps){.count = 0};
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	errno = 0;
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		read_map_line(ret_maps, library, line);
	err = file && ret_maps->count ? 0 : errno ? -errno : -ESRCH;
	if (file)
		fclose(file);
	return err;
}

static void check_maps(struct tm_doctor *doctor, const struct maps *maps)
{
	uint64_t most;

	if (maps->ours)
		tm_doctor_ok("process: has the library ('%s')", maps->ours_path);
	else
		tm_doctor_problem(
			doctor,
			"process: does not have the library: preloading works at a program's "
			"start alone, start it by 'tiermalloc run'");
	if (maps->other_copy)
		tm_doctor_note("process: its library is not the one beside this command");
	if (maps->sanitizer[0])
		tm_doctor_problem(doctor, "process: has a sanitizer (%s), which owns malloc",
				  maps->sanitizer);
	if (maps->rival[0])
		tm_doctor_note(
			"process: has another allocator too ('%s'): the first one named in LD_PRELOAD serves",
			maps->rival);
	if (tm_doctor_read_number("/proc/sys/vm/max_map_count", &most) && maps->count > most / 2)
		tm_doctor_note("process: %zu mappings of %llu allowed, raise vm.max_map_count",
			       maps->count, (unsigned long long)most);
}

/* Value of field "name" in /proc/PID/status; false if it is missing. */
static bool status_field(const char *text, const char *name, uint64_t *ret_value)
{
	char key[40];
	const char *at;
	struct tm_str number;

	snprintf(key, sizeof(key), "\n%s:", name);
	at = strstr(text, key);
	if (at == NULL)
		return false;
	at += strlen(key);
	at += strspn(at, " \t");
	number = (struct tm_str){at, strspn(at, "0123456789")};
	return tm_parse_u64(number, ret_value) == 0;
}

static void note_bytes(const char *text, const char *name, const char *meaning)
{
	char amount[32];
	uint64_t kib;

	if (!status_field(text, name, &kib) || kib == 0)
		return;
	tm_fmt_bytes(amount, sizeof(amount), kib << 10);
	tm_doctor_note("process: %s %s", amount, meaning);
}

static void check_status(int pid)
{
	char path[64], text[8192];
	uint64_t value;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (!tm_doctor_read(path, text, sizeof(text)))
		return;
	if (status_field(text, "Seccomp", &value) && value)
		tm_doctor_note(
			"process: runs under a seccomp filter: the library starts no helper thread and reads "
			"no file there");
	note_bytes(text, "VmLck", "are locked, which cannot be given back");
	if (status_field(text, "THP_enabled", &value) && value == 0)
		tm_doctor_note("process: huge pages are switched off for it (prctl)");
	note_bytes(text, "VmSwap", "are swapped out");
}

int tm_doctor_process(struct tm_doctor *doctor, int pid)
{
	char link[64], exe[PATH_MAX];
	struct tm_program program;
	struct maps maps;
	ssize_t len;
	int err = read_maps(&maps, pid, doctor->library);

	if (err == -EACCES || err == -EPERM) {
		tm_say("doctor: process %d may not be looked at, run this as its user or as root",
		       pid);
		return TM_EXIT_TROUBLE;
	}
	if (err)
		return tm_say_usage("doctor: there is no process %d, or it is a kernel thread",
				    pid);
	check_maps(doctor, &maps);
	check_status(pid);
	tm_doctor_cuda_process(pid, maps.ours);
	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	len = readlink(link, exe, sizeof(exe) - 1);
	if (len <= 0)
		return 0;
	exe[len] = '\0';
	if (tm_program_look(&program, exe) != 0) {
		tm_doctor_note("program: '%s' cannot be examined any more", exe);
		return 0;
	}
	print_findings(doctor, &program);
	note_plugins(program.path);
	return 0;
}
