/* SPDX-License-Identifier: MIT */
/* msg: see msg.h. */
#include "shim/os/msg.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

#include "shim/base/assert.h"
#include "shim/base/fmt.h"
#include "shim/os/clock.h"
#include "shim/os/proc.h"
#include "shim/os/sys.h"

#define PREFIX "tiermalloc: "
#define LINE_MAX_BYTES 1024

/* If a line is too long its names are truncated to this, since the message proper follows them. */
#define NAME_SHOWN 240

static struct {
	_Atomic unsigned int mask_set; /* mask | 1 << 31 once set; 0 (zeroed memory): "warn" */
	_Atomic uint64_t second;       /* that "lines" counts */
	_Atomic unsigned int lines;
	_Atomic unsigned int left_out;
	/* [const after boot] file of descriptor 2; st_ino 0: it was closed or never checked */
	dev_t device;
	ino_t inode;
	bool looked;
} msg TM_AT_START_DATA;

#define MASK_IS_SET (1u << 31)

TM_AT_START_CODE void tm_msg_init(void)
{
	struct stat st;

	msg.looked = true;
	if (tm_sys_fstat(2, &st) == 0) {
		msg.device = st.st_dev;
		msg.inode = st.st_ino;
	}
}

TM_AT_START_CODE void tm_msg_set_mask(unsigned int mask)
{
	atomic_store_explicit(&msg.mask_set, mask | MASK_IS_SET, memory_order_relaxed);
}

TM_AT_START_CODE bool tm_msg_wants(enum tm_msg_level level)
{
	unsigned int mask = atomic_load_explicit(&msg.mask_set, memory_order_relaxed);

	if (!(mask & MASK_IS_SET))
		mask = TM_MSG_WARN;
	return level == TM_MSG_ERROR || (mask & (unsigned int)level) != 0;
}

bool tm_msg_has_stderr(void)
{
	struct stat st;

	if (!msg.looked)
		return true;
	if (tm_sys_fstat(2, &st) != 0)
		return false;
	if (st.st_dev == msg.device && st.st_ino == msg.inode)
		return true;
	return !S_ISREG(st.st_mode) || (tm_sys_fcntl(2, F_GETFL, 0) & O_APPEND) != 0;
}

/* At a change of second two threads may both reset the count: harmless. */
static bool within_rate(void)
{
	uint64_t now = tm_clock_ms() / 1000;

	if (atomic_exchange_explicit(&msg.second, now, memory_order_relaxed) != now)
		atomic_store_explicit(&msg.lines, 0, memory_order_relaxed);
	if (atomic_fetch_add_explicit(&msg.lines, 1, memory_order_relaxed) < TM_MSG_BURST)
		return true;
	atomic_fetch_add_explicit(&msg.left_out, 1, memory_order_relaxed);
	return false;
}

/*
 * Writing to a pipe without reader, or to a file at RLIMIT_FSIZE, raises a signal that would kill
 * the program for our output: the thread blocks and consumes it. A signal already pending is the
 * program's and stays.
 */
static long write_quietly(int fd, const char *text, size_t len)
{
	const uint64_t both = UINT64_C(1) << (SIGPIPE - 1) | UINT64_C(1) << (SIGXFSZ - 1);
	const struct timespec now = {0, 0};
	uint64_t old = both, waiting = 0;
	long done;

	/* not under a seccomp filter of the program, which may not allow the calls (H68) */
	if (!tm_proc_may_open())
		return tm_sys_write(fd, text, len);
	tm_sys_sigprocmask(SIG_BLOCK, &both, &old);
	if ((old & both) != 0)
		tm_syscall6(SYS_rt_sigpending, (long)(uintptr_t)&waiting, sizeof(waiting), 0, 0, 0,
			    0);
	done = tm_sys_write(fd, text, len);
	waiting = both & ~waiting;
	if (done == -EPIPE || done == -EFBIG)
		tm_syscall6(SYS_rt_sigtimedwait, (long)(uintptr_t)&waiting, 0,
			    (long)(uintptr_t)&now, sizeof(waiting), 0, 0);
	tm_sys_sigprocmask(SIG_SETMASK, &old, NULL);
	return done;
}

int tm_msg_write(int fd, const char *text, size_t len)
{
	while (len > 0) {
		long done = write_quietly(fd, text, len);

		if (done == -EINTR)
			continue;
		if (done < 0)
			return (int)done;
		text += done;
		len -= (size_t)done;
	}
	return 0;
}

/* Ends the text, which has no other line break, with a newline, also a truncated one. */
static void send(struct tm_fmt_out *out)
{
	size_t len = tm_fmt_stored(out);

	tm_fmt_defuse(out, 0);
	if (len + 1 == out->size)
		len--;
	out->buf[len] = '\n';
	(void)tm_msg_write(2, out->buf, len + 1);
}

void tm_msg(enum tm_msg_level level, const char *format, ...)
{
	char line[LINE_MAX_BYTES];
	struct tm_fmt_out out = {line, sizeof(line), 0};
	unsigned int left_out;
	va_list args;

	if (!tm_msg_wants(level) || !tm_msg_has_stderr())
		return;
	if (level != TM_MSG_ERROR && !within_rate())
		return;
	tm_fmt_add(&out, PREFIX);
	va_start(args, format);
	tm_fmt_add_v(&out, format, args);
	va_end(args);
	if (out.len >= sizeof(line)) {
		out = (struct tm_fmt_out){line, sizeof(line), sizeof(PREFIX) - 1};
		va_start(args, format);
		tm_fmt_add_cut(&out, NAME_SHOWN, format, args);
		va_end(args);
	}
	left_out = atomic_exchange_explicit(&msg.left_out, 0, memory_order_relaxed);
	if (left_out)
		tm_fmt_add(&out, " (%u lines left out before)", left_out);
	send(&out);
}

const char *tm_msg_reason(int error)
{
	switch (error) {
	case EPERM:
	case EACCES: return "not permitted";
	case ENOENT: return "no such file or folder";
	case EINTR: return "interrupted";
	case EIO: return "the device failed";
	case ENXIO: return "no such device, or no reader";
	case EAGAIN: return "not now";
	case ENOMEM: return "no memory";
	case EBUSY: return "in use";
	case EEXIST: return "it is there already";
	case ENODEV:
	case EOPNOTSUPP: return "not possible on this file system";
	case ENOTDIR: return "a part of the path is no folder";
	case EISDIR: return "it is a folder";
	case EINVAL: return "it is not of the right kind";
	case ENFILE:
	case EMFILE: return "too many open files";
	case ETXTBSY: return "it is being run";
	case EFBIG: return "files may not become so large";
	case ENOSPC: return "the disk is full";
	case EROFS: return "a file system that is only read";
	case ENAMETOOLONG: return "too long a name";
	case ENOSYS: return "the kernel does not know the call";
	case ELOOP: return "a symbolic link is not followed";
	case EDQUOT: return "the user's quota is used up";
	default: return "failed";
	}
}

_Noreturn void tm_assert_failed(const char *expression, const char *file, int line)
{
	const uint64_t abort_only = (uint64_t)1 << (SIGABRT - 1);

	tm_msg(TM_MSG_ERROR, "internal error: '%s' does not hold at %s:%d, please report this",
	       expression, file, line);
	/*
	 * the program's SIGABRT handler may run; if it returns, or the signal is ignored, exit here
	 */
	tm_sys_sigprocmask(SIG_UNBLOCK, &abort_only, NULL);
	tm_sys_tgkill(tm_sys_getpid(), tm_sys_gettid(), SIGABRT);
	tm_sys_exit_group(134);
	__builtin_unreachable();
}
