/* SPDX-License-Identifier: MIT */
#include "shim/scan/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>

#include "shim/base/fmt.h"
#include "shim/base/parse.h"
#include "shim/helper.h"
#include "shim/ledger/ledger.h"
#include "shim/os/clock.h"
#include "shim/os/mem.h"
#include "shim/os/proc.h"
#include "shim/os/sys.h"
#include "shim/scan/scan_image.h"
#include "shim/thread.h"
#include "shim/unwind/unwind.h"

/* SIGRTMAX - 3: away from both ends of the range, where programs and libc take their signals. */
#define STOP_SIGNAL 61
#define STOP_DEADLINE_NS UINT64_C(50000000)
#define RESTORER 0x04000000u
#define WAIT_ALL_KINDS 0x40000000 /* __WALL */

void tm_scan_restorer(void);

/* The kernel's struct sigaction. */
struct action {
	void (*handler)(int);
	uint64_t flags;
	void (*restorer)(void);
	uint64_t mask;
};

static struct {
	_Atomic uint32_t generation; /* odd: signalled threads wait */
	_Atomic uint32_t stopped;
	_Atomic uint32_t image; /* process id of the running pass's image; 0: none */
	uint32_t seq;
	int tid[TM_SCAN_THREADS];
	uint32_t tids, told;
	struct tm_scan_order order;
} scan;

/* --- standing still --------------------------------------------------------------------------- */

/* Reads the generation before reporting that it waits: the other order could miss the release. */
static void stand_still(int number)
{
	uint32_t generation = atomic_load_explicit(&scan.generation, memory_order_acquire);

	(void)number;
	if (generation % 2 == 0)
		return;
	atomic_fetch_add_explicit(&scan.stopped, 1, memory_order_acq_rel);
	tm_sys_futex(&scan.stopped, FUTEX_WAKE_PRIVATE, 1, NULL);
	while (atomic_load_explicit(&scan.generation, memory_order_acquire) == generation)
		tm_sys_futex(&scan.generation, FUTEX_WAIT_PRIVATE, generation, NULL);
}

/* The program may use the signal: then threads are not stopped. */
static bool take_signal(void)
{
	struct action old = {0}, new = {.handler = stand_still,
					.flags = SA_RESTART | SA_ONSTACK | RESTORER,
					.restorer = tm_scan_restorer,
					.mask = UINT64_MAX};

	if (tm_syscall6(SYS_rt_sigaction, STOP_SIGNAL, 0, (long)(uintptr_t)&old, 8, 0, 0) != 0)
		return false;
	if (old.handler == stand_still)
		return true;
	if (old.handler != SIG_DFL)
		return false;
	/* the handler stays: a signal still pending after the pass would kill the process */
	return tm_syscall6(SYS_rt_sigaction, STOP_SIGNAL, (long)(uintptr_t) & new, 0, 8, 0, 0) == 0;
}

/*
 * A signal sent to a thread that blocks it could stay pending over an exec, and kill the new
 * program.
 */
static bool blocks_signal(int tid)
{
	char path[64], text[2048];

	tm_fmt(path, sizeof(path), "/proc/self/task/%d/status", tid);
	if (tm_proc_read(path, text, sizeof(text)) <= 0)
		return true;
	for (const char *c = text; *c != '\0'; c++) {
		uint64_t mask = 0;

		if (!tm_str_starts(tm_str_of(c), "SigBlk:\t"))
			continue;
		for (c += 8; (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'f'); c++)
			mask = mask << 4 | (unsigned)(*c <= '9' ? *c - '0' : *c - 'a' + 10);
		return (mask >> (STOP_SIGNAL - 1) & 1) != 0;
	}
	return true;
}

static bool is_listed(int tid)
{
	for (uint32_t i = 0; i < scan.tids; i++)
		if (scan.tid[i] == tid)
			return true;
	return false;
}

/* arg: whether to stop it. */
static void list_thread(const char *name, void *arg)
{
	const bool *stop = arg;
	uint64_t tid;

	if (tm_parse_u64(tm_str_of(name), &tid) != 0 || (int)tid == tm_thread_id() ||
	    (int)tid == tm_helper_tid() || is_listed((int)tid) || scan.tids == TM_SCAN_THREADS)
		return;
	scan.tid[scan.tids++] = (int)tid;
	if (*stop && !blocks_signal((int)tid) &&
	    tm_syscall6(SYS_tgkill, tm_sys_getpid(), (long)tid, STOP_SIGNAL, 0, 0, 0) == 0)
		scan.told++;
}

/* Threads that are not listed yet; false: there was none. */
static bool list_threads(int dir, bool stop)
{
	uint32_t before = scan.tids;

	tm_proc_each_name(dir, list_thread, &stop);
	return scan.tids != before;
}

static void wait_for_threads(uint64_t deadline_ns)
{
	for (;;) {
		uint32_t stopped = atomic_load_explicit(&scan.stopped, memory_order_acquire);
		uint64_t now = tm_clock_ns();
		const struct timespec pause = {.tv_nsec = 1000000};

		if (stopped >= scan.told || now >= deadline_ns)
			return;
		tm_sys_futex(&scan.stopped, FUTEX_WAIT_PRIVATE, stopped, &pause);
	}
}

static void stop_threads(int dir, bool stop)
{
	uint64_t deadline = tm_clock_ns() + STOP_DEADLINE_NS;

	scan.tids = scan.told = 0;
	atomic_store_explicit(&scan.stopped, 0, memory_order_relaxed);
	if (stop)
		atomic_fetch_add_explicit(&scan.generation, 1, memory_order_acq_rel);
	while (list_threads(dir, stop) && stop)
		wait_for_threads(deadline);
}

static void release_threads(bool stop)
{
	if (!stop)
		return;
	atomic_fetch_add_explicit(&scan.generation, 1, memory_order_acq_rel);
	tm_sys_futex(&scan.generation, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL);
}

/* Threads that have exited since they were listed, as our helper may, don't count as missed. */
static uint32_t listed_and_alive(void)
{
	uint32_t alive = 0;

	for (uint32_t i = 0; i < scan.tids; i++)
		if (tm_syscall6(SYS_tgkill, tm_sys_getpid(), scan.tid[i], 0, 0, 0, 0) == 0)
			alive++;
	return alive;
}

/* "number argument... sp pc" of a thread that waits in the kernel. */
static uintptr_t stack_pointer_of(int tid)
{
	char path[64], text[512];
	unsigned word = 0;
	uint64_t value = 0;

	tm_fmt(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	if (tm_proc_read(path, text, sizeof(text)) <= 0)
		return 0;
	for (const char *c = text; *c != '\0' && word < 8; c++)
		if (*c == ' ' && ++word == 7) {
			for (c += 3; (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'f'); c++)
				value = value << 4 |
					(unsigned)(*c <= '9' ? *c - '0' : *c - 'a' + 10);
			return value;
		}
	return 0;
}

/* --- a pass ----------------------------------------------------------------------------------- */

static void look_at_threads(struct tm_scan_order *order)
{
	order->threads = scan.tids;
	for (uint32_t i = 0; i < scan.tids; i++)
		order->thread[i].sp = stack_pointer_of(scan.tid[i]);
}

static void run_image(void)
{
	struct tm_ledger_header *header = tm_ledger_header();
	int rc = tm_scan_image(&scan.order);

	header->control_error = rc;
	__atomic_store_n(&header->control_done, scan.order.seq, __ATOMIC_RELEASE);
	tm_sys_futex((_Atomic uint32_t *)&header->control_done, FUTEX_WAKE, INT32_MAX, NULL);
	tm_syscall6(SYS_exit_group, 0, 0, 0, 0, 0, 0);
}

/*
 * Registers of this thread lie in `regs`, on its stack, above the address that is taken for its
 * end.
 */
static TM_NOINLINE int fork_image(enum tm_ledger_control level, uint32_t seq)
{
	struct tm_ledger_header *header = tm_ledger_header();
	struct tm_unwind_regs regs;
	uint64_t all = UINT64_MAX, old = 0, before;
	bool stop = level == TM_LEDGER_SCAN_STOP && take_signal();
	int dir = tm_sys_open("/proc/self/task", O_RDONLY | O_DIRECTORY, 0);
	uint32_t alive;
	long pid;

	if (dir < 0)
		return dir;
	tm_unwind_here(&regs);
	scan.order =
		(struct tm_scan_order){.seq = seq, .level = stop ? level : TM_LEDGER_SCAN_SNAPSHOT};
	scan.order.own_sp = (uintptr_t)&regs & ~(uintptr_t)15;
	scan.order.room = tm_mem_map(TM_SCAN_ROOM_BYTES);
	if (scan.order.room == NULL) {
		tm_sys_close(dir);
		return -ENOMEM;
	}
	tm_helper_memory(&scan.order.helper, &scan.order.helper_end);
	tm_sys_sigprocmask(SIG_BLOCK, &all, &old);
	before = tm_clock_ns();
	stop_threads(dir, stop);
	look_at_threads(&scan.order);
	pid = tm_syscall6(SYS_clone, 0, 0, 0, 0, 0, 0);
	if (pid == 0)
		run_image();
	alive = listed_and_alive();
	release_threads(stop);
	header->stop_us = (uint32_t)((tm_clock_ns() - before) / 1000);
	header->threads_stopped =
		stop ? atomic_load_explicit(&scan.stopped, memory_order_relaxed) : 0;
	header->threads_missed =
		alive > header->threads_stopped ? alive - header->threads_stopped : 0;
	tm_sys_sigprocmask(SIG_SETMASK, &old, NULL);
	(void)tm_mem_unmap_raw(scan.order.room, TM_SCAN_ROOM_BYTES);
	tm_sys_close(dir);
	if (pid < 0)
		return (int)pid;
	scan.seq = seq;
	atomic_store_explicit(&scan.image, (uint32_t)pid, memory_order_relaxed);
	return 0;
}

int tm_scan_begin(enum tm_ledger_control level, uint32_t seq)
{
	if (!tm_proc_may_open())
		return -EPERM;
	return fork_image(level, seq);
}

bool tm_scan_is_busy(void)
{
	struct tm_ledger_header *header = tm_ledger_header();
	uint32_t pid = atomic_load_explicit(&scan.image, memory_order_relaxed);
	int status = 0;

	if (pid == 0)
		return false;
	if (tm_syscall6(SYS_wait4, (long)pid, (long)(uintptr_t)&status, 1 | WAIT_ALL_KINDS, 0, 0,
			0) == 0)
		return true;
	atomic_store_explicit(&scan.image, 0, memory_order_relaxed);
	if (status != 0 && header != NULL && header->control_done != scan.seq) {
		/* the image crashed: inaccessible memory, or a limit of the kernel */
		header->control_error = -EFAULT;
		__atomic_store_n(&header->control_done, scan.seq, __ATOMIC_RELEASE);
	}
	return false;
}

void tm_scan_fork_child(void)
{
	atomic_store_explicit(&scan.image, 0, memory_order_relaxed);
}
