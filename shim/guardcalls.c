/* SPDX-License-Identifier: MIT */
/*
 * guardcalls: system calls of the program that change what our memory or our helper is.
 *
 * Advice, locks, policies and protection stay with pages when a block is freed: the zone is told, so
 * that the next owner gets plain pages (H93). Changing the user, or leaving a namespace, is refused
 * or goes wrong while the helper's thread is there: it is stopped first. Each ends in a jump to the
 * next definition, which may be another interposer's; its result and errno are the caller's.
 */
#include <errno.h>
#include <linux/prctl.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include "shim/base/attrs.h"
#include "shim/boot.h"
#include "shim/elf.h"
#include "shim/heap/span.h"
#include "shim/heap/zone.h"
#include "shim/helper.h"

typedef _Atomic uintptr_t cache;

/* The next definition; resolved at the first call: two threads find the same. */
TM_INLINE uintptr_t next_of(cache *c, const char *name)
{
	uintptr_t address = atomic_load_explicit(c, memory_order_relaxed);
	if (TM_LIKELY(address != 0))
		return address;
	address = tm_elf_next(name);
	atomic_store_explicit(c, address, memory_order_relaxed);
	return address;
}

static TM_COLD int not_here(void)
{
	errno = ENOSYS;
	return -1;
}

static void about_pages(const void *start, size_t bytes)
{
	if (tm_boot_is_ready() && tm_root.server == TM_SERVER_ENGINE) {
		tm_zone_taint(start, bytes);
		tm_span_taint(start, bytes);
	}
}

static void about_process(void)
{
	if (tm_boot_is_ready() && tm_root.server == TM_SERVER_ENGINE)
		tm_helper_stop();
}

/* FORWARD(name, parameters, arguments, what to do before) */
#define FORWARD(type, name, parameters, arguments, before)                                         \
	type name parameters;                                                                      \
	TM_EXPORT type name parameters                                                             \
	{                                                                                          \
		static cache at;                                                                   \
		type(*next) parameters;                                                            \
		uintptr_t address = next_of(&at, #name);                                           \
		before;                                                                            \
		if (address == 0)                                                                  \
			return not_here();                                                         \
		TM_ELF_FUNCTION(address, &next);                                                   \
		return next arguments;                                                             \
	}

FORWARD(int, madvise, (void *start, size_t bytes, int advice), (start, bytes, advice),
	about_pages(start, bytes))
FORWARD(int, posix_madvise, (void *start, size_t bytes, int advice), (start, bytes, advice),
	about_pages(start, bytes))
FORWARD(int, mlock, (const void *start, size_t bytes), (start, bytes), about_pages(start, bytes))
FORWARD(int, mlock2, (const void *start, size_t bytes, unsigned flags), (start, bytes, flags),
	about_pages(start, bytes))
FORWARD(int, mprotect, (void *start, size_t bytes, int prot), (start, bytes, prot),
	about_pages(start, bytes))
FORWARD(int, pkey_mprotect, (void *start, size_t bytes, int prot, int key),
	(start, bytes, prot, key), about_pages(start, bytes))
FORWARD(long, mbind,
	(void *start, unsigned long bytes, int mode, const unsigned long *nodes, unsigned long max,
	 unsigned flags),
	(start, bytes, mode, nodes, max, flags), about_pages(start, bytes))

FORWARD(int, setuid, (uid_t user), (user), about_process())
FORWARD(int, seteuid, (uid_t user), (user), about_process())
FORWARD(int, setreuid, (uid_t real, uid_t effective), (real, effective), about_process())
FORWARD(int, setresuid, (uid_t real, uid_t effective, uid_t saved), (real, effective, saved),
	about_process())
FORWARD(int, setfsuid, (uid_t user), (user), about_process())
FORWARD(int, setgid, (gid_t group), (group), about_process())
FORWARD(int, setegid, (gid_t group), (group), about_process())
FORWARD(int, setregid, (gid_t real, gid_t effective), (real, effective), about_process())
FORWARD(int, setresgid, (gid_t real, gid_t effective, gid_t saved), (real, effective, saved),
	about_process())
FORWARD(int, setfsgid, (gid_t group), (group), about_process())
FORWARD(int, setgroups, (size_t n, const gid_t *groups), (n, groups), about_process())
FORWARD(int, unshare, (int flags), (flags), about_process())
FORWARD(int, setns, (int fd, int type), (fd, type), about_process())

/*
 * A filter may kill for what the helper does and even for the look whether there is a filter (H68):
 * whoever installs one is noticed here, before it is in force.
 */
static TM_COLD void filter_comes(void)
{
	if (tm_boot_is_ready() && tm_root.server == TM_SERVER_ENGINE)
		tm_helper_forbid();
}

TM_INLINE void about_filter(bool installs)
{
	if (TM_UNLIKELY(installs))
		filter_comes();
}

FORWARD(int, prctl,
	(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d),
	(option, a, b, c, d), about_filter(option == PR_SET_SECCOMP))
FORWARD(long, syscall, (long number, long a, long b, long c, long d, long e, long f),
	(number, a, b, c, d, e, f),
	about_filter(number == SYS_seccomp || (number == SYS_prctl && a == PR_SET_SECCOMP)))
