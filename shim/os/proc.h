/* SPDX-License-Identifier: MIT */
/*
 * proc: what the kernel says about this process and machine: auxiliary vector, /proc, cgroup, CPUs.
 * Owns cached constants only. No allocation, no errno, no descriptor is kept. Files may be missing
 * (chroot, seccomp): every reader has an answer for that.
 *
 * Under a seccomp filter an open may be fatal (H68): after boot only tm_proc_is_filtered's caller,
 * once at the start of a helper, may read files.
 */
#ifndef TM_OS_PROC_H
#define TM_OS_PROC_H

#include "shim/base/attrs.h"

/*
 * The program is about to set a filter that may kill for an open (H68): from now on nothing is read,
 * every reader answers as for a missing file. For good; signal-safe.
 */
void tm_proc_forbid_files(void);
bool tm_proc_may_open(void);

/* Of the machine, at boot; UINT64_MAX: the kernel doesn't say. */
uint64_t tm_proc_memory_bytes(void);

/* What may still be made resident without pressure, now; UINT64_MAX: the kernel doesn't say. */
uint64_t tm_proc_available_bytes(void);

/* The file's first size - 1 bytes and a zero byte. Bytes read, or -errno. A pipe is waited for a second. */
long tm_proc_read(const char *path, char *buf, size_t size);

/*
 * The same into pages of its own, for texts too long for the small stacks that callers may stand on
 * (H26); status and smaps_rollup of Linux 6 are 1.5 KiB. After an error there is no text to free.
 */
#define TM_PROC_TEXT_BYTES ((size_t)4 << 10)
long tm_proc_text(const char *path, char **ret_text);
void tm_proc_text_free(char *text);

/* Calls see for each name in the directory that dir is open on, from its beginning. */
void tm_proc_each_name(int dir, void (*see)(const char *name, void *arg), void *arg);

/* The number a file begins with; "max" reads as UINT64_MAX. 0 or -errno. */
int tm_proc_read_u64(const char *path, uint64_t *ret_value);

/* The word in brackets of a file such as .../transparent_hugepage/enabled. 0 or -errno. */
int tm_proc_read_choice(const char *path, char *buf, size_t size);

/* Value of an auxiliary vector entry (AT_*), 0 when absent. */
unsigned long tm_proc_auxv(unsigned long type);

/* The kernel started this program with raised rights: no environment may be trusted (AT_SECURE). */
bool tm_proc_is_secure(void);

/* The kernel's page; cached. */
size_t tm_proc_page_bytes(void);

/* Smallest memory limit of the cgroups (v2 or v1) the process is in; UINT64_MAX: none is known. */
uint64_t tm_proc_cgroup_limit(void);

/* Clock ticks since boot at which the process started: with the pid a name that is never reused. */
uint64_t tm_proc_start_time(void);
/* The same of another process, by its /proc/PID/stat; 0: there is none. */
uint64_t tm_proc_start_time_of(const char *path);

/* Zeros where nothing is known. A small file: cheaper than the status. */
struct tm_proc_memory {
	uint64_t rss_bytes;
	uint64_t shared_bytes; /* of these, pages of files and shared ones */
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

/* From /proc/self/status; fields that it lacks are 0. 0 or -errno. */
int tm_proc_status(struct tm_proc_status *ret_status);

struct tm_proc_rollup {
	uint64_t rss_bytes;
	uint64_t pss_bytes;
	uint64_t anon_bytes;
	uint64_t anon_huge_bytes;
	uint64_t lazy_free_bytes;
	uint64_t private_dirty_bytes;
};

/* From /proc/self/smaps_rollup: costs the kernel a walk of all pages. 0 or -errno. */
int tm_proc_rollup(struct tm_proc_rollup *ret_rollup);

/* Name of the running program (comm of the process), at most 15 characters. */
void tm_proc_name(char *buf, size_t size);

/* Name of the calling thread, at most 15 characters and a zero. */
void tm_proc_thread_name(char name[16]);

/*
 * Bytes that this process may map, by its limits on addresses and on data; SIZE_MAX: no limit. At boot
 * only: a filter that the program sets may not have the call (H68).
 */
size_t tm_proc_memory_limit(void);

#endif
