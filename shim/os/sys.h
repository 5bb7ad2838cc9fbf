/* SPDX-License-Identifier: MIT */
/*
 * sys: raw system calls without libc: no errno, no cancellation point, no interposition, no lock.
 * Any thread, also one without libc state, any signal handler, before any constructor. Each returns
 * the kernel's result, a value or -errno. Use mem.h for pages and proc.h for reading files; this is
 * for everything else.
 */
#ifndef TM_OS_SYS_H
#define TM_OS_SYS_H

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "shim/base/attrs.h"

long tm_syscall6(long number, long a, long b, long c, long d, long e, long f);

/* A pointer as a system call argument. */
TM_INLINE long tm_sys_ptr(const volatile void *p)
{
	return (long)(uintptr_t)p;
}

TM_INLINE bool tm_sys_is_error(long result)
{
	return (unsigned long)result > -4096UL;
}

TM_INLINE long tm_sys_mmap(void *at, size_t bytes, int prot, int flags, int fd, long offset)
{
	return tm_syscall6(SYS_mmap, tm_sys_ptr(at), (long)bytes, prot, flags, fd, offset);
}

TM_INLINE int tm_sys_munmap(void *at, size_t bytes)
{
	return (int)tm_syscall6(SYS_munmap, tm_sys_ptr(at), (long)bytes, 0, 0, 0, 0);
}

TM_INLINE int tm_sys_mprotect(void *at, size_t bytes, int prot)
{
	return (int)tm_syscall6(SYS_mprotect, tm_sys_ptr(at), (long)bytes, prot, 0, 0, 0);
}

TM_INLINE int tm_sys_madvise(void *at, size_t bytes, int advice)
{
	return (int)tm_syscall6(SYS_madvise, tm_sys_ptr(at), (long)bytes, advice, 0, 0, 0);
}

TM_INLINE long tm_sys_mremap(void *at, size_t old_bytes, size_t new_bytes, int flags, void *to)
{
	return tm_syscall6(SYS_mremap, tm_sys_ptr(at), (long)old_bytes, (long)new_bytes, flags,
			   tm_sys_ptr(to), 0);
}

TM_INLINE int tm_sys_mincore(void *at, size_t bytes, unsigned char *ret_pages)
{
	return (int)tm_syscall6(SYS_mincore, tm_sys_ptr(at), (long)bytes, tm_sys_ptr(ret_pages), 0,
				0, 0);
}

/* "timeout" is relative for FUTEX_WAIT; NULL waits for ever. */
TM_INLINE int tm_sys_futex(_Atomic uint32_t *word, int op, uint32_t value,
			   const struct timespec *timeout)
{
	return (int)tm_syscall6(SYS_futex, tm_sys_ptr(word), op, (long)value, tm_sys_ptr(timeout),
				0, 0);
}

TM_INLINE int tm_sys_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	return (int)tm_syscall6(SYS_clock_gettime, clock, tm_sys_ptr(ret_time), 0, 0, 0, 0);
}

TM_INLINE int tm_sys_nanosleep(const struct timespec *wanted)
{
	return (int)tm_syscall6(SYS_nanosleep, tm_sys_ptr(wanted), 0, 0, 0, 0, 0);
}

TM_INLINE int tm_sys_openat(int dir, const char *path, int flags, unsigned int mode)
{
	return (int)tm_syscall6(SYS_openat, dir, tm_sys_ptr(path), flags, (long)mode, 0, 0);
}

TM_INLINE int tm_sys_open(const char *path, int flags, unsigned int mode)
{
	return tm_sys_openat(AT_FDCWD, path, flags | O_CLOEXEC, mode);
}

TM_INLINE int tm_sys_close(int fd)
{
	return (int)tm_syscall6(SYS_close, fd, 0, 0, 0, 0, 0);
}

TM_INLINE long tm_sys_read(int fd, void *buf, size_t bytes)
{
	return tm_syscall6(SYS_read, fd, tm_sys_ptr(buf), (long)bytes, 0, 0, 0);
}

TM_INLINE long tm_sys_pread(int fd, void *buf, size_t bytes, long offset)
{
	return tm_syscall6(SYS_pread64, fd, tm_sys_ptr(buf), (long)bytes, offset, 0, 0);
}

TM_INLINE long tm_sys_write(int fd, const void *buf, size_t bytes)
{
	return tm_syscall6(SYS_write, fd, tm_sys_ptr(buf), (long)bytes, 0, 0, 0);
}

TM_INLINE long tm_sys_lseek(int fd, long offset, int whence)
{
	return tm_syscall6(SYS_lseek, fd, offset, whence, 0, 0, 0);
}

TM_INLINE int tm_sys_ftruncate(int fd, long bytes)
{
	return (int)tm_syscall6(SYS_ftruncate, fd, bytes, 0, 0, 0, 0);
}

/* On both architectures the kernel's struct stat equals that of 64-bit glibc. */
TM_INLINE int tm_sys_fstat(int fd, struct stat *ret_stat)
{
	return (int)tm_syscall6(SYS_fstat, fd, tm_sys_ptr(ret_stat), 0, 0, 0, 0);
}

TM_INLINE int tm_sys_fstatat(int dir, const char *path, struct stat *ret_stat, int flags)
{
	return (int)tm_syscall6(SYS_newfstatat, dir, tm_sys_ptr(path), tm_sys_ptr(ret_stat), flags,
				0, 0);
}

TM_INLINE int tm_sys_fcntl(int fd, int command, long argument)
{
	return (int)tm_syscall6(SYS_fcntl, fd, command, argument, 0, 0, 0);
}

TM_INLINE int tm_sys_mkdirat(int dir, const char *path, unsigned int mode)
{
	return (int)tm_syscall6(SYS_mkdirat, dir, tm_sys_ptr(path), (long)mode, 0, 0, 0);
}

TM_INLINE int tm_sys_unlinkat(int dir, const char *path, int flags)
{
	return (int)tm_syscall6(SYS_unlinkat, dir, tm_sys_ptr(path), flags, 0, 0, 0);
}

/* Writes no terminating zero byte. */
TM_INLINE long tm_sys_readlinkat(int dir, const char *path, char *buf, size_t bytes)
{
	return tm_syscall6(SYS_readlinkat, dir, tm_sys_ptr(path), tm_sys_ptr(buf), (long)bytes, 0,
			   0);
}

TM_INLINE int tm_sys_getpid(void)
{
	return (int)tm_syscall6(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

TM_INLINE int tm_sys_gettid(void)
{
	return (int)tm_syscall6(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

TM_INLINE unsigned int tm_sys_geteuid(void)
{
	return (unsigned int)tm_syscall6(SYS_geteuid, 0, 0, 0, 0, 0, 0);
}

TM_INLINE int tm_sys_tgkill(int pid, int tid, int signal)
{
	return (int)tm_syscall6(SYS_tgkill, pid, tid, signal, 0, 0, 0);
}

TM_INLINE int tm_sys_prctl(int option, unsigned long a, unsigned long b, unsigned long c)
{
	return (int)tm_syscall6(SYS_prctl, option, (long)a, (long)b, (long)c, 0, 0);
}

/* Signal sets as the kernel has them: 64 bits. Either pointer may be NULL. */
TM_INLINE int tm_sys_sigprocmask(int how, const uint64_t *set, uint64_t *ret_old)
{
	return (int)tm_syscall6(SYS_rt_sigprocmask, how, tm_sys_ptr(set), tm_sys_ptr(ret_old),
				sizeof(uint64_t), 0, 0);
}

TM_INLINE long tm_sys_getrandom(void *buf, size_t bytes, unsigned int flags)
{
	return tm_syscall6(SYS_getrandom, tm_sys_ptr(buf), (long)bytes, (long)flags, 0, 0, 0);
}

struct tm_sys_limit {
	uint64_t soft;
	uint64_t hard;
};

TM_INLINE int tm_sys_getrlimit(int resource, struct tm_sys_limit *ret_limit)
{
	return (int)tm_syscall6(SYS_prlimit64, 0, resource, 0, tm_sys_ptr(ret_limit), 0, 0);
}

TM_INLINE void tm_sys_exit_group(int status)
{
	for (;;)
		tm_syscall6(SYS_exit_group, status, 0, 0, 0, 0, 0);
}

#endif
