/* SPDX-License-Identifier: MIT */
#include "shim/report_command.h"

#include <link.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "shim/base/fmt.h"
#include "shim/base/parse.h"
#include "shim/boot.h"
#include "shim/ledger/ledger.h"
#include "shim/os/msg.h"
#include "shim/os/proc.h"
#include "shim/os/sys.h"
#include "shim/unwind/unwind.h"

#define ENVIRONMENT_MAX 1024u
#define WAIT_ALL_KINDS 0x40000000 /* __WALL */

extern char **environ;
#pragma weak environ

static const char *verb(void)
{
	switch (tm_root.options.report) {
	case TM_REPORT_LEAK: return "leaks";
	case TM_REPORT_FRAG: return "frag";
	case TM_REPORT_FULL: return "report";
	default: return NULL;
	}
}

/* DIR/lib/libtiermalloc.so -> DIR/bin/tiermalloc; beside the library in a build tree. */
static bool find_command(char *path, size_t size)
{
	struct tm_unwind_object self;
	const struct link_map *map;
	size_t slash[2] = {0, 0}, n = 0;

	if (!tm_unwind_object((uintptr_t)find_command, &self) || self.link_map == NULL)
		return false;
	map = self.link_map;
	if (map->l_name == NULL || map->l_name[0] != '/')
		return false;
	for (; map->l_name[n] != '\0'; n++) {
		if (map->l_name[n] != '/')
			continue;
		slash[0] = slash[1];
		slash[1] = n;
	}
	tm_fmt(path, size, "%.*s/bin/tiermalloc", (int)slash[0], map->l_name);
	if (tm_syscall6(SYS_faccessat, AT_FDCWD, (long)(uintptr_t)path, X_OK, 0, 0, 0) == 0)
		return true;
	tm_fmt(path, size, "%.*s/tiermalloc", (int)slash[1], map->l_name);
	return tm_syscall6(SYS_faccessat, AT_FDCWD, (long)(uintptr_t)path, X_OK, 0, 0, 0) == 0;
}

/* The command is not to be run under the library, nor to report on itself. */
static void clean_environment(char **to)
{
	size_t n = 0;

	for (char **e = &environ != NULL ? environ : NULL;
	     e != NULL && *e != NULL && n + 1 < ENVIRONMENT_MAX; e++)
		if (!tm_str_starts(tm_str_of(*e), "LD_PRELOAD=") &&
		    !tm_str_starts(tm_str_of(*e), "TIERMALLOC"))
			to[n++] = *e;
	to[n] = NULL;
}

static void start(const char *command, const char *ledger, int fd)
{
	const char *arguments[] = {"tiermalloc", verb(), ledger, NULL};
	static char *environment[ENVIRONMENT_MAX];
	long pid;

	clean_environment(environment);
	pid = tm_syscall6(SYS_clone, 0, 0, 0, 0, 0, 0);
	if (pid == 0) {
		tm_syscall6(SYS_dup3, fd, 1, 0, 0, 0, 0);
		tm_syscall6(SYS_execve, (long)(uintptr_t)command, (long)(uintptr_t)arguments,
			    (long)(uintptr_t)environment, 0, 0, 0);
		tm_syscall6(SYS_exit_group, 127, 0, 0, 0, 0, 0);
	}
	if (pid > 0)
		tm_syscall6(SYS_wait4, pid, 0, WAIT_ALL_KINDS, 0, 0, 0);
}

void tm_report_command(int fd)
{
	const char *ledger = tm_ledger_path();
	char command[512];

	if (verb() == NULL || ledger == NULL || tm_root.secure || !tm_proc_may_open())
		return;
	if (find_command(command, sizeof(command)))
		start(command, ledger, fd);
	else
		tm_msg(TM_MSG_WARN, "the ledger is '%s': tiermalloc %s %s", ledger, verb(), ledger);
}
