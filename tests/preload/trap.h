/* SPDX-License-Identifier: MIT */
/*
 * Single-stepping by the processor's trap flag: while it is set in a thread, SIGTRAP comes after each
 * instruction. The handler's return restores the flag as it stands in the interrupted context. x86-64 only.
 */
#ifndef TESTS_PRELOAD_TRAP_H
#define TESTS_PRELOAD_TRAP_H

#include "probe.h"

#if defined(__x86_64__)
#include <setjmp.h>
#include <ucontext.h>

#define TRAP_FLAG 0x100ll /* of the flags register */

/* Always in line, for a call and its return would be instructions to stop at. */
__attribute__((always_inline)) static inline void trap_begin(void)
{
	__asm__ volatile(
		"sub $128, %%rsp\n\tpushf\n\torl $0x100, (%%rsp)\n\tpopf\n\tadd $128, %%rsp" ::
			: "memory", "cc");
}

__attribute__((always_inline)) static inline void trap_end(void)
{
	__asm__ volatile(
		"sub $128, %%rsp\n\tpushf\n\tandl $0xfffffeff, (%%rsp)\n\tpopf\n\tadd $128, %%rsp" ::
			: "memory", "cc");
}

/* In a handler of SIGTRAP: whether the interrupted code is stepped through any further. */
static inline void trap_again(void *context, bool again)
{
	greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];

	*flags = again ? *flags | TRAP_FLAG : *flags & ~TRAP_FLAG;
}

/* Where trap_jump goes, and after how many more instructions. One thread at a time. */
static sigjmp_buf trap_out;
static volatile int trap_left;

static inline void trap_jump(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	if (--trap_left == 0)
		siglongjmp(trap_out, 1);
	trap_again(context, true);
}

/* From now on a handler jumps to trap_out after trap_left stops. */
static inline void trap_jump_install(void)
{
	struct sigaction action = {.sa_sigaction = trap_jump, .sa_flags = SA_SIGINFO | SA_NODEFER};

	sigaction(SIGTRAP, &action, NULL);
}
#endif

#endif
