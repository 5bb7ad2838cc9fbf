/* SPDX-License-Identifier: MIT */
/* program: see program.h. */
#include "tools/cmd/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tools/elf_look.h"
#include "tools/library.h"

/* The kernel follows that many "#!" lines (BINPRM_MAX_RECURSION is 4). */
#define SCRIPTS_MAX 4

static TM_PRINTF(3, 4) void add(struct tm_program *program, enum tm_reach reach, const char *format,
				...)
{
	struct tm_finding *finding = &program->findings[program->count];
	va_list args;

	if (program->count == TM_PROGRAM_FINDINGS)
		return;
	finding->reach = reach;
	va_start(args, format);
	vsnprintf(finding->text, sizeof(finding->text), format, args);
	va_end(args);
	program->count++;
}

static bool is_runnable(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static int resolve(const char *command, char *ret_path)
{
	const char *path = getenv("PATH");
	char candidate[PATH_MAX];

	if (strchr(command, '/')) {
		struct stat st;

		if (stat(command, &st) != 0)
			return -errno;
		if (!is_runnable(command))
			return -EACCES;
		return realpath(command, ret_path) ? 0 : -errno;
	}
	if (path == NULL)
		path = "/bin:/usr/bin";
	while (*path) {
		size_t len = strcspn(path, ":");

		snprintf(candidate, sizeof(candidate), "%.*s/%s", len ? (int)len : 1,
			 len ? path : ".", command);
		if (is_runnable(candidate))
			return realpath(candidate, ret_path) ? 0 : -errno;
		path += len;
		path += *path == ':';
	}
	return -ENOENT;
}

/* The interpreter of a "#!" line; resolves "/usr/bin/env NAME". False: not a script. */
static bool script_interpreter(const struct tm_elf *file, char *ret_path)
{
	char line[512];
	char *word, *rest = NULL;
	size_t len = file->bytes < sizeof(line) - 1 ? file->bytes : sizeof(line) - 1;

	if (len < 3 || memcmp(file->data, "#!", 2) != 0)
		return false;
	memcpy(line, file->data, len);
	line[len] = '\0';
	line[strcspn(line, "\n")] = '\0';
	word = strtok_r(line + 2, " \t", &rest);
	if (word == NULL || resolve(word, ret_path) != 0)
		return false;
	if (strcmp(strrchr(word, '/') ? strrchr(word, '/') + 1 : word, "env") != 0)
		return true;
	do
		word = strtok_r(NULL, " \t", &rest);
	while (word && (word[0] == '-' || strchr(word, '=')));
	return word && resolve(word, ret_path) == 0;
}

/*
 * Checks for set-user-id and the like: the kernel then sets AT_SECURE, the loader drops paths from
 * LD_PRELOAD, and the library ignores its environment.
 */
static void look_at_rights(struct tm_program *program)
{
	struct stat st;

	if (stat(program->path, &st) != 0)
		return;
	if (((st.st_mode & S_ISUID) && st.st_uid != geteuid()) ||
	    ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) && st.st_gid != getegid()))
		add(program, TM_REACH_NONE,
		    "'%s' is set-user-ID or set-group-ID: the loader ignores LD_PRELOAD, run it as its owner",
		    program->path);
	else if (geteuid() != 0 && getxattr(program->path, "security.capability", NULL, 0) > 0)
		add(program, TM_REACH_NONE,
		    "'%s' has file capabilities: the loader ignores LD_PRELOAD, give them by the caller",
		    program->path);
}

static const char *own_allocator(const struct tm_elf *elf)
{
	static const struct {
		const char *symbol;
		const char *name;
	} known[] = {
		{"je_malloc", "jemalloc"},
		{"je_arena_malloc_hard", "jemalloc"},
		{"_rjem_malloc", "jemalloc"},
		{"mallctl", "jemalloc"},
		{"tc_malloc", "tcmalloc"},
		{"TCMallocInternalMalloc", "tcmalloc"},
		{"mi_malloc", "mimalloc"},
		{"rpmalloc", "rpmalloc"},
		{"scalable_malloc", "oneTBB's allocator"},
		{"sn_malloc", "snmalloc"},
	};

	for (size_t i = 0; i < TM_ARRAY_LEN(known); i++) {
		if (tm_elf_look_contains(elf, known[i].symbol))
			return known[i].name;
	}
	return NULL;
}

static void look_at_allocator(struct tm_program *program, const struct tm_elf *elf)
{
	const char *name = own_allocator(elf);

	if (tm_elf_look_defines(elf, "malloc")) {
		add(program, TM_REACH_PASSIVE,
		    "'%s' exports its own malloc (%s), which goes before every preloaded one: its own "
		    "calls are not served",
		    program->path, name ? name : "unknown");
		if (!tm_elf_look_defines(elf, "calloc") || !tm_elf_look_defines(elf, "free"))
			add(program, TM_REACH_NOTE,
			    "'%s' exports malloc without %s: blocks of both cross", program->path,
			    tm_elf_look_defines(elf, "free") ? "calloc" : "free");
	} else if (name) {
		add(program, TM_REACH_NOTE,
		    "'%s' contains %s: what goes through that allocator's own names is not seen",
		    program->path, name);
	}
	for (size_t i = 0; i < elf->needed_count; i++) {
		const char *rival = tm_library_rival(elf->needed[i]);

		if (rival && strstr(rival, "san") == NULL)
			add(program, TM_REACH_NOTE,
			    "'%s' is linked with %s: the preloaded library is asked first",
			    program->path, elf->needed[i]);
	}
}

static void look_at_sanitizers(struct tm_program *program, const struct tm_elf *elf)
{
	static const struct {
		const char *symbol;
		const char *library;
		const char *name;
	} known[] = {
		{"__asan_init", "libasan", "AddressSanitizer"},
		{"__tsan_init", "libtsan", "ThreadSanitizer"},
		{"__msan_init", "libmsan", "MemorySanitizer"},
		{"__lsan_init", "liblsan", "LeakSanitizer"},
		{"__hwasan_init", "libhwasan", "HWAddressSanitizer"},
	};

	for (size_t i = 0; i < TM_ARRAY_LEN(known); i++) {
		if (tm_elf_look_contains(elf, known[i].symbol) ||
		    tm_elf_look_imports(elf, known[i].symbol) ||
		    tm_elf_look_needs(elf, known[i].library))
			add(program, TM_REACH_PASSIVE,
			    "'%s' is built with %s, which owns malloc: the library steps aside",
			    program->path, known[i].name);
	}
}

static unsigned int machine_of_command(void)
{
	struct tm_elf self;
	unsigned int machine = 0;

	if (tm_elf_look_open(&self, "/proc/self/exe") == 0)
		machine = self.machine;
	tm_elf_look_close(&self);
	return machine;
}

/* Checks the file's format; false if nothing further can be said. */
static bool look_at_format(struct tm_program *program, const struct tm_elf *elf)
{
	if (elf->kind == TM_ELF_OTHER || elf->machine != machine_of_command()) {
		add(program, TM_REACH_NONE,
		    "'%s' is for another class or machine: the loader says 'wrong ELF class' and ignores the library",
		    program->path);
		return false;
	}
	if (elf->interpreter == NULL) {
		add(program, TM_REACH_NONE,
		    "'%s' is statically linked%s: there is no loader to preload with",
		    program->path,
		    tm_elf_look_section(elf, ".note.go.buildid") ? " (a Go program)" : "");
		return false;
	}
	if (strstr(elf->interpreter, "ld-musl")) {
		add(program, TM_REACH_NONE,
		    "'%s' uses the musl C library: this build is for glibc, and musl refuses it",
		    program->path);
		return false;
	}
	return true;
}

static void look_at_file(struct tm_program *program, const struct tm_elf *elf)
{
	if (!look_at_format(program, elf))
		return;
	look_at_sanitizers(program, elf);
	look_at_allocator(program, elf);
	if (tm_elf_look_section(elf, ".note.go.buildid"))
		add(program, TM_REACH_NOTE,
		    "'%s' is a Go program: Go's own heap does not use malloc, only its C parts do",
		    program->path);
}

int tm_program_look(struct tm_program *ret_program, const char *command)
{
	struct tm_elf file;
	int err;

	*ret_program = (struct tm_program){.count = 0};
	err = resolve(command, ret_program->path);
	for (int depth = 0; err == 0; depth++) {
		char next[PATH_MAX];

		err = tm_elf_look_open(&file, ret_program->path);
		if (err)
			break;
		if (file.kind != TM_ELF_NONE) {
			look_at_rights(ret_program);
			look_at_file(ret_program, &file);
			tm_elf_look_close(&file);
			return 0;
		}
		/* execvp runs a file of unknown format by the shell. */
		if (!script_interpreter(&file, next) && realpath("/bin/sh", next) == NULL)
			err = -ENOEXEC;
		if (depth == 0)
			strcpy(ret_program->interpreted, ret_program->path);
		strcpy(ret_program->path, next);
		tm_elf_look_close(&file);
		if (depth == SCRIPTS_MAX)
			err = -ELOOP;
	}
	return err;
}

enum tm_reach tm_program_reach(const struct tm_program *program)
{
	enum tm_reach worst = TM_REACH_OK;

	for (size_t i = 0; i < program->count; i++) {
		if (program->findings[i].reach > worst)
			worst = program->findings[i].reach;
	}
	return worst;
}

const char *tm_program_why(const struct tm_program *program, enum tm_reach reach)
{
	for (size_t i = 0; i < program->count; i++) {
		if (program->findings[i].reach == reach)
			return program->findings[i].text;
	}
	return NULL;
}
