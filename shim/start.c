/* SPDX-License-Identifier: MIT */
/*
 * start: hooks the begin and end of main and the end of the process.
 *
 * Wraps __libc_start_main to see main's return before any exit handler runs, and exit to see a call
 * of it. The report is written from .fini_array, never by atexit, which allocates under its own
 * lock (H05). One unversioned definition serves both of glibc's versions of __libc_start_main
 * (2.2.5 and 2.34), which have the same arguments.
 */
#include <stdlib.h>
#include <unistd.h>

#include "shim/base/attrs.h"
#include "shim/boot.h"
#include "shim/elf.h"
#include "shim/fork.h"
#include "shim/ledger/ledger.h"
#include "shim/report.h"
#include "shim/thread.h"
#include "shim/trace.h"

typedef int (*main_function)(int argc, char **argv, char **envp);
typedef void (*plain_function)(void);

int __libc_start_main(main_function main, int argc, char **argv, plain_function init,
		      plain_function fini, plain_function rtld_fini, void *stack_end);

static main_function real_main;

static TM_AT_START_CODE int main_seen(int argc, char **argv, char **envp)
{
	int status = real_main(argc, argv, envp);
	tm_report_main_ended();
	return status;
}

TM_EXPORT TM_AT_START_CODE int __libc_start_main(main_function main, int argc, char **argv,
						 plain_function init, plain_function fini,
						 plain_function rtld_fini, void *stack_end)
{
	int (*next)(main_function, int, char **, plain_function, plain_function, plain_function,
		    void *);
	uintptr_t address = tm_elf_next("__libc_start_main");
	if (address == 0)
		__builtin_trap();
	TM_ELF_FUNCTION(address, &next);
	tm_boot();
	real_main = main;
	return next(main_seen, argc, argv, init, fini, rtld_fini, stack_end);
}

TM_EXPORT TM_AT_START_CODE void exit(int status)
{
	void (*next)(int);
	uintptr_t address = tm_elf_next("exit");
	if (address == 0)
		__builtin_trap();
	TM_ELF_FUNCTION(address, &next);
	tm_report_main_ended();
	next(status);
	__builtin_unreachable();
}

/*
 * Looked up at process start: in a forked child that exits at once, the lookup would fault in four
 * pages of libc's symbol tables.
 */
static struct ending {
	const char *name;
	void (*next)(int);
} endings[] = {{"_exit", NULL}, {"_Exit", NULL}};

static TM_AT_START_CODE void look_up(struct ending *ending)
{
	uintptr_t address = tm_elf_next(ending->name);

	if (address != 0)
		TM_ELF_FUNCTION(address, &ending->next);
}

/* _exit and relatives run no exit handler, but are a clean exit: the ledger must be deleted. */
__attribute__((noreturn)) static TM_AT_START_CODE void end_now(struct ending *ending, int status)
{
	if (ending->next == NULL)
		look_up(ending);
	if (ending->next == NULL)
		__builtin_trap();
	tm_ledger_end_now();
	ending->next(status);
	__builtin_unreachable();
}

TM_EXPORT TM_AT_START_CODE void _exit(int status)
{
	end_now(&endings[0], status);
}

TM_EXPORT TM_AT_START_CODE void _Exit(int status)
{
	end_now(&endings[1], status);
}

/* pthread_atfork calls this; wrapped so that our handlers are registered before anybody else's. */
int __register_atfork(void (*before)(void), void (*parent)(void), void (*child)(void), void *dso);

TM_EXPORT int __register_atfork(void (*before)(void), void (*parent)(void), void (*child)(void),
				void *dso)
{
	if (tm_boot() && tm_root.server == TM_SERVER_ENGINE)
		tm_fork_init();
	return tm_fork_register(before, parent, child, dso);
}

/*
 * Called by the address sanitizer's run-time library, which by default refuses to run with a
 * preloaded library in front of it (H80). The program's own definition takes precedence.
 */
const char *__asan_default_options(void);

TM_EXPORT const char *__asan_default_options(void)
{
	return "verify_asan_link_order=0";
}

/*
 * Boots before main, while there is one thread, even if nothing has been allocated. Also registers
 * the fork handlers here: libc does that under a lock that exit takes too, so if it happened in the
 * first allocation, a signal handler that interrupts it and calls exit would hang (H19).
 */
__attribute__((constructor)) static TM_AT_START_CODE void at_load(void)
{
	look_up(&endings[0]);
	look_up(&endings[1]);
	if (tm_boot() && tm_root.server == TM_SERVER_ENGINE)
		tm_fork_init();
}

__attribute__((destructor)) static TM_AT_START_CODE void at_exit(void)
{
	tm_report_at_exit();
	tm_ledger_end();
	tm_trace_end();
}
