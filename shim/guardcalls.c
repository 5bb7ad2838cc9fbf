/* SPDX-License-Identifier: MIT */
/*
 * guardcalls: interposed system call wrappers that affect our memory or the helper thread.
 *
 * madvise, mlock, NUMA policies and mprotect outlive the free of a block, and so does another
 * mapping that the program puts in its place: the zone is told, so that the next owner gets plain
 * pages (H93). Changing the user, or leaving a namespace, fails or goes wrong while the helper
 * thread exists, so it is stopped first. A seccomp filter that the program installs may kill for
 * open or clone: from that call on we make neither (H68). Each wrapper ends in a jump to the next
 * definition, which may be another interposer's; its result and errno go to the caller.
 */
#include <asm/shmbuf.h>
#include <errno.h>
#include <linux/ipc.h>
#include <linux/mman.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <linux/shm.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include "shim/alloc.h"
#include "shim/base/attrs.h"
#include "shim/boot.h"
#include "shim/elf.h"
#include "shim/fork.h"
#include "shim/heap/span.h"
#include "shim/heap/zone.h"
#include "shim/helper.h"
#include "shim/os/proc.h"
#include "shim/os/sys.h"

/* For older headers. */
enum advice {
	ADVICE_COLD = 20,
	ADVICE_PAGEOUT = 21,
	ADVICE_POPULATE_READ = 22,
	ADVICE_POPULATE_WRITE = 23,
	ADVICE_COLLAPSE = 25,
};

typedef _Atomic uintptr_t cache;

/* The next definition, resolved at the first call; racing threads find the same. */
TM_INLINE uintptr_t next_of(cache *c, const char *name)
{
	uintptr_t address = atomic_load_explicit(c, memory_order_relaxed);
	if (TM_LIKELY(address != 0))
		return address;
	address = tm_elf_next(name);
	atomic_store_explicit(c, address, memory_order_relaxed);
	return address;
}

static void about_pages(const void *start, size_t bytes)
{
	if (tm_boot_is_ready() && tm_root.server == TM_SERVER_ENGINE) {
		tm_zone_taint(start, bytes);
		tm_span_taint(start, bytes);
	}
}

/*
 * Advice without effect on a later owner of the pages: most that programs use, and all that we use.
 */
static bool leaves_traces(int advice)
{
	switch (advice) {
	case MADV_NORMAL:
	case MADV_WILLNEED:
	case MADV_DONTNEED:
	case MADV_FREE:
	case ADVICE_COLD:
	case ADVICE_PAGEOUT:
	case ADVICE_POPULATE_READ:
	case ADVICE_POPULATE_WRITE:
	case ADVICE_COLLAPSE: return false;
	default: return true;
	}
}

static void about_advice(const void *start, size_t bytes, int advice)
{
	if (leaves_traces(advice))
		about_pages(start, bytes);
}

/* The program maps something else over pages of the zone. */
static void about_mapping(const void *start, size_t bytes, int flags)
{
	if ((flags & MAP_FIXED) != 0)
		about_pages(start, bytes);
}

static void about_move(const void *old, size_t old_bytes, size_t bytes, int flags, const void *to)
{
	about_pages(old, old_bytes);
	if ((flags & MREMAP_FIXED) != 0)
		about_pages(to, bytes);
}

/* shmat: the length of the segment is known only to the kernel. */
static void about_segment(int id, const void *start, int flags)
{
	struct shmid64_ds segment;

	if ((flags & SHM_REMAP) != 0 &&
	    tm_syscall6(SYS_shmctl, id, IPC_STAT, (long)&segment, 0, 0, 0) == 0)
		about_pages(start, segment.shm_segsz);
}

static TM_COLD int not_here(void)
{
	errno = ENOSYS;
	return -1;
}

static void about_process(void)
{
	if (tm_boot_is_ready() && tm_root.server == TM_SERVER_ENGINE)
		tm_helper_stop();
}

/*
 * mlockall makes all mappings resident, later ones too, and they count against a limit that is
 * often 8 MiB (H59): releases free memory first, and makes later growth steps small.
 */
static void about_all_pages(void)
{
	struct tm_sys_limit limit;

	if (!tm_boot() || tm_root.server != TM_SERVER_ENGINE)
		return;
	if (tm_sys_geteuid() != 0 && tm_sys_getrlimit(RLIMIT_MEMLOCK, &limit) == 0)
		tm_zone_limit_room(limit.soft);
	(void)tm_alloc_trim();
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
			return (type)(intptr_t)not_here();                                         \
		TM_ELF_FUNCTION(address, &next);                                                   \
		return next arguments;                                                             \
	}

FORWARD(int, madvise, (void *start, size_t bytes, int advice), (start, bytes, advice),
	about_advice(start, bytes, advice))
FORWARD(int, posix_madvise, (void *start, size_t bytes, int advice), (start, bytes, advice),
	about_advice(start, bytes, advice))
FORWARD(void *, mmap, (void *start, size_t bytes, int prot, int flags, int fd, off_t offset),
	(start, bytes, prot, flags, fd, offset), about_mapping(start, bytes, flags))
FORWARD(void *, mmap64, (void *start, size_t bytes, int prot, int flags, int fd, off_t offset),
	(start, bytes, prot, flags, fd, offset), about_mapping(start, bytes, flags))
FORWARD(int, munmap, (void *start, size_t bytes), (start, bytes), about_pages(start, bytes))
FORWARD(void *, mremap, (void *old, size_t old_bytes, size_t bytes, int flags, void *to),
	(old, old_bytes, bytes, flags, to), about_move(old, old_bytes, bytes, flags, to))
FORWARD(void *, shmat, (int id, const void *start, int flags), (id, start, flags),
	about_segment(id, start, flags))
FORWARD(int, mlock, (const void *start, size_t bytes), (start, bytes), about_pages(start, bytes))
FORWARD(int, mlock2, (const void *start, size_t bytes, unsigned flags), (start, bytes, flags),
	about_pages(start, bytes))
FORWARD(int, mlockall, (int flags), (flags), about_all_pages())
FORWARD(int, mprotect, (void *start, size_t bytes, int prot), (start, bytes, prot),
	about_pages(start, bytes))
FORWARD(int, pkey_mprotect, (void *start, size_t bytes, int prot, int key),
	(start, bytes, prot, key), about_pages(start, bytes))
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

/* --- calls with many meanings ----------------------------------------------------------------- */

static void about_filter(void)
{
	tm_proc_forbid_files();
	if (tm_boot_is_ready() && tm_root.server == TM_SERVER_ENGINE)
		tm_helper_forbid();
}

/* Declared with their maximal arguments: a variadic callee finds them in the same places. */
long mbind(void *start, unsigned long bytes, int mode, const unsigned long *nodes,
	   unsigned long max, unsigned flags);
int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);

static long raw_mbind(void *start, unsigned long bytes, int mode, const unsigned long *nodes,
		      unsigned long max, unsigned flags)
{
	long result = tm_syscall6(SYS_mbind, (long)start, (long)bytes, mode, (long)nodes, (long)max,
				  (long)flags);
	if (!tm_sys_is_error(result))
		return result;
	errno = (int)-result;
	return -1;
}

/* libnuma's, where the program has it. */
TM_EXPORT long mbind(void *start, unsigned long bytes, int mode, const unsigned long *nodes,
		     unsigned long max, unsigned flags)
{
	static cache c;
	long (*next)(void *, unsigned long, int, const unsigned long *, unsigned long, unsigned);
	uintptr_t address = next_of(&c, "mbind");
	about_pages(start, bytes);
	if (address == 0)
		return raw_mbind(start, bytes, mode, nodes, max, flags);
	TM_ELF_FUNCTION(address, &next);
	return next(start, bytes, mode, nodes, max, flags);
}

/* Without a filter program the call only probes for support. */
TM_EXPORT int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	static cache known;
	int (*next)(int, unsigned long, unsigned long, unsigned long, unsigned long);
	uintptr_t address = next_of(&known, "prctl");
	if (option == PR_SET_SECCOMP && (a == SECCOMP_MODE_STRICT || b != 0))
		about_filter();
	if (address == 0)
		return not_here();
	TM_ELF_FUNCTION(address, &next);
	return next(option, a, b, c, d);
}

static void about_call(long number, long a, long b, long c, long d, long e)
{
	switch (number) {
	case SYS_madvise: about_advice((const void *)a, (size_t)b, (int)c); break;
	case SYS_mmap: about_mapping((const void *)a, (size_t)b, (int)d); break;
	case SYS_mremap:
		about_move((const void *)a, (size_t)b, (size_t)c, (int)d, (const void *)e);
		break;
	case SYS_shmat: about_segment((int)a, (const void *)b, (int)c); break;
	case SYS_munmap:
	case SYS_mprotect:
	case SYS_pkey_mprotect:
	case SYS_mlock:
	case SYS_mlock2:
	case SYS_mbind: about_pages((const void *)a, (size_t)b); break;
	case SYS_mlockall: about_all_pages(); break;
	case SYS_unshare:
	case SYS_setns: about_process(); break;
	case SYS_prctl:
		if (a == PR_SET_SECCOMP && (b == SECCOMP_MODE_STRICT || c != 0))
			about_filter();
		break;
	case SYS_seccomp:
		if (a == SECCOMP_SET_MODE_STRICT || (a == SECCOMP_SET_MODE_FILTER && c != 0))
			about_filter();
		break;
	default: break;
	}
}

/*
 * Called by guardcalls_*.S: handles the call and returns the address to jump to. The wrapper of
 * syscall is assembly because the last argument lies on the caller's stack: C code would write it
 * back there, over the caller's data if it passed fewer arguments.
 */
uintptr_t tm_guardcalls_syscall(long number, long a, long b, long c, long d, long e);

uintptr_t tm_guardcalls_syscall(long number, long a, long b, long c, long d, long e)
{
	static cache known;
	about_call(number, a, b, c, d, e);
	return tm_fork_by_number(next_of(&known, "syscall"), number, a, b);
}
