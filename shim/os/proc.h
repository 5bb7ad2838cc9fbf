/* SPDX-License-Identifier: MIT */
/*
 * proc: information of the kernel about this process and machine: auxiliary vector, /proc, cgroup,
 * limits. State: cached constants and the flag below. No allocation, no errno, keeps no descriptor
 * open. Files may be missing (chroot, seccomp filter): every reader defines a result for that.
 *
 * Under a seccomp filter open may be fatal (H68): see tm_proc_forbid_files.
 */
#ifndef TM_OS_PROC_H
#define TM_OS_PROC_H

#include "shim/base/attrs.h"

/*
 * Called when the program is about to install a seccomp filter, which may kill the process for an
 * open (H68): from now on every reader behaves as if the file were missing. Irreversible;
 * async-signal-safe. tm_proc_may_open: not yet called.
 */
void tm_proc_forbid_files(void);
bool tm_proc_may_open(void);

/* The machine's memory; UINT64_MAX: unknown. At boot. */
uint64_t tm_proc_memory_bytes(void);

/* Memory that can become resident without pressure (MemAvailable), now; UINT64_MAX: unknown. */
uint64_t tm_proc_available_bytes(void);

/*
 * Reads up to size - 1 bytes from the start of a file and adds a zero byte. Bytes read, or -errno.
 * Waits at most a second for a pipe.
 */
long tm_proc_read(const char *path, char *buf, size_t size);

/*
 * The same into newly mapped pages, for texts too long for callers on small stacks (H26); status
 * and smaps_rollup of Linux 6 are 1.5 KiB. Free the text with tm_proc_text_free, except after an
 * error.
 */
#define TM_PROC_TEXT_BYTES ((size_t)4 << 10)
long tm_proc_text(const char *path, char **ret_text);
void tm_proc_text_free(char *text);

/* Calls `see` for each name in the directory open as descriptor `dir`, from its beginning. */
void tm_proc_each_name(int dir, void (*see)(const char *name, void *arg), void *arg);

/* The number at the start of a file; "max" gives UINT64_MAX. 0 or -errno. */
int tm_proc_read_u64(const char *path, uint64_t *ret_value);

/* The bracketed word of a file such as .../transparent_hugepage/enabled. 0 or -errno. */
int tm_proc_read_choice(const char *path, char *buf, size_t size);

/* Value of an auxiliary vector entry (AT_*), 0 when absent. */
unsigned long tm_proc_auxv(unsigned long type);

/* AT_SECURE: the program runs with raised privileges, so the environment must not be trusted. */
bool tm_proc_is_secure(void);

/* The kernel's page size; cached. */
size_t tm_proc_page_bytes(void);

/*
 * Smallest memory limit of the cgroups (v2 or v1) that contain the process; UINT64_MAX: none known.
 */
uint64_t tm_proc_cgroup_limit(void);

/* Start time of the process in clock ticks since boot; with the pid it identifies the process. */
uint64_t tm_proc_start_time(void);
/* The same of another process; path: its /proc/PID/stat. 0: no such process. */
uint64_t tm_proc_start_time_of(const char *path);

/* From /proc/self/statm, which is cheaper than status; zeros if unknown. */
struct tm_proc_memory {
	uint64_t rss_bytes;
	uint64_t shared_bytes; /* of rss_bytes: file and shared memory pages */
};
struct tm_proc_memory tm_proc_memory(void);

struct tm_proc_status {
	uint64_t vm_bytes;
	uint64_t vm_peak_bytes;
	uint64_t rss_bytes;
	uint64_t rss_peak_bytes;
	uint64_t rss_anon_bytes;
	uint64_t rss_file_bytes;
	uint64_t rss_shmem_bytes;
	uint64_t locked_bytes;
	uint64_t swap_bytes;
	uint64_t threads;
	uint64_t seccomp; /* 0 none, 1 strict, 2 filter */
};

/* Reads /proc/self/status; missing fields are 0. 0 or -errno. */
int tm_proc_status(struct tm_proc_status *ret_status);

struct tm_proc_rollup {
	uint64_t rss_bytes;
	uint64_t pss_bytes;
	uint64_t anon_bytes;
	uint64_t anon_huge_bytes;
	uint64_t lazy_free_bytes;
	uint64_t private_dirty_bytes;
};

/* Reads /proc/self/smaps_rollup, for which the kernel walks all pages. 0 or -errno. */
int tm_proc_rollup(struct tm_proc_rollup *ret_rollup);

/* Name of the running program (comm of the process), at most 15 characters. */
void tm_proc_name(char *buf, size_t size);

/* Name of the calling thread, at most 15 characters and a zero. */
void tm_proc_thread_name(char name[16]);

/*
 * Bytes that the process may map, by RLIMIT_AS and RLIMIT_DATA; SIZE_MAX: no limit. At boot only: a
 * seccomp filter of the program may not allow the system call (H68).
 */
size_t tm_proc_memory_limit(void);

#endif
