/* SPDX-License-Identifier: MIT */
#include "shim/report.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>

#include "shim/alloc_debug.h"
#include "shim/base/fmt.h"
#include "shim/base/parse.h"
#include "shim/base/version.h"
#include "shim/boot.h"
#include "shim/dl.h"
#include "shim/foreign.h"
#include "shim/ledger/ledger.h"
#include "shim/module.h"
#include "shim/os/clock.h"
#include "shim/os/lock.h"
#include "shim/os/maps.h"
#include "shim/os/mem.h"
#include "shim/os/msg.h"
#include "shim/os/proc.h"
#include "shim/os/sys.h"
#include "shim/passive.h"
#include "shim/pooling.h"
#include "shim/report_command.h"

#define TEXT_BYTES ((size_t)8192)

static _Atomic uint32_t done;         /* the report of this process was or is being written */
static _Atomic int main_ended_pid;    /* process that the figures below belong to; 0: none */
static struct tm_snapshot main_ended; /* when main returned or exit was called */

/* --- figures ---------------------------------------------------------------------------------- */

int tm_report_snapshot(struct tm_snapshot *ret_snapshot)
{
	const uint64_t all = UINT64_MAX;
	uint64_t old = 0;
	int rc;
	tm_sys_sigprocmask(SIG_BLOCK, &all, &old);
	rc = tm_account_snapshot(ret_snapshot);
	tm_sys_sigprocmask(SIG_SETMASK, &old, NULL);
	return rc;
}

/* --- the text --------------------------------------------------------------------------------- */

static void add_bytes(struct tm_fmt_out *out, uint64_t bytes, int width)
{
	char text[24];
	tm_fmt_bytes(text, sizeof(text), bytes);
	tm_fmt_add(out, "%*s", width, text);
}

static void add_row(struct tm_fmt_out *out, const char *name, const struct tm_snapshot_part *p)
{
	tm_fmt_add(out, "  %-12s", name);
	add_bytes(out, p->live_bytes, 12);
	add_bytes(out, p->slot_bytes, 12);
	add_bytes(out, p->cached_bytes, 12);
	add_bytes(out, p->mapped_bytes, 12);
	tm_fmt_add(out, "%12zu\n", (size_t)p->blocks);
}

static void add_table(struct tm_fmt_out *out, const struct tm_snapshot *s)
{
	struct tm_snapshot_part total = {"total",         s->live_bytes,   s->slot_bytes,
					 s->cached_bytes, s->mapped_bytes, s->blocks};
	unsigned i;
	tm_fmt_add(out, "  %-12s%12s%12s%12s%12s%12s\n", "part", "live", "slots", "cached",
		   "mapped", "blocks");
	for (i = 0; i < TM_SNAPSHOT_PARTS; i++)
		if (s->part[i].name != NULL)
			add_row(out, s->part[i].name, &s->part[i]);
	add_row(out, "total", &total);
}

/* By tier: live bytes, peak, and the kinds of pages of its memory, with the reason. */
static void add_tiers(struct tm_fmt_out *out, const struct tm_snapshot *s)
{
	tm_fmt_add(out, "  %-12s%12s%12s%12s%12s%12s\n", "tier", "live", "slots", "cached", "peak",
		   "refused");
	for (unsigned i = 1; i <= TM_TIER_COUNT; i++) {
		unsigned tier = i % TM_TIER_COUNT; /* the sum last */
		const struct tm_snapshot_tier *t = &s->tier[tier];

		tm_fmt_add(out, "  %-12s",
			   tier == TM_TIER_ALL ? "total"
					       : tm_tunables_tier_name((enum tm_tier)tier));
		add_bytes(out, t->live_bytes, 12);
		add_bytes(out, t->slot_bytes, 12);
		add_bytes(out, t->cached_bytes, 12);
		add_bytes(out, t->peak_bytes, 12);
		tm_fmt_add(out, "%12zu\n", (size_t)t->refused);
	}
	for (unsigned tier = 1; tier < TM_TIER_COUNT; tier++) {
		for (unsigned k = 0; k < TM_HUGE_STEPS; k++) {
			if (s->tier[tier].stand_bytes[k] == 0)
				continue;
			tm_fmt_add(out, "  pages of %-10s",
				   tm_tunables_tier_name((enum tm_tier)tier));
			add_bytes(out, s->tier[tier].stand_bytes[k], 11);
			tm_fmt_add(out, "  %s\n", tm_huge_step_name((enum tm_huge_step)k));
		}
	}
}

static void add_line(struct tm_fmt_out *out, const char *name, uint64_t bytes, const char *meaning)
{
	tm_fmt_add(out, "  %-18s", name);
	add_bytes(out, bytes, 12);
	tm_fmt_add(out, "  %s\n", meaning);
}

static void add_kernel_view(struct tm_fmt_out *out, const struct tm_snapshot *s)
{
	struct tm_maps_resident ours = {0, 0};
	struct tm_proc_status status = {0};
	char share[16];
	if (s->peak_live_bytes != 0)
		add_line(out, "peak live", s->peak_live_bytes,
			 "largest at any time, slots by their spans");
	if (tm_maps_resident(s->zone_start, s->zone_end, &ours) == 0) {
		uint64_t promille =
			ours.resident_bytes == 0 ? 0 : ours.huge_bytes * 1000 / ours.resident_bytes;
		add_line(out, "resident", ours.resident_bytes, "of the blocks' memory, in RAM now");
		tm_fmt_fixed(share, sizeof(share), promille, 1);
		add_line(out, "huge", ours.huge_bytes, "of this, in huge pages");
		tm_fmt_add(out, "  %-18s%10s %%\n", "huge coverage", share);
	}
	add_line(out, "own tables", s->meta_bytes, "spans, page map, account");
	if (tm_proc_status(&status) != 0)
		return;
	add_line(out, "RSS", status.rss_bytes, "of the process");
	add_line(out, "  anonymous", status.rss_anon_bytes, "of this");
	add_line(out, "  files", status.rss_file_bytes, "of this");
	add_line(out, "  shared", status.rss_shmem_bytes, "of this");
	if (status.rss_anon_bytes > ours.resident_bytes)
		add_line(out, "  unaccounted", status.rss_anon_bytes - ours.resident_bytes,
			 "anonymous, not blocks: stacks, tables, other allocators");
	add_line(out, "peak RSS", status.rss_peak_bytes, "of the process");
}

static void add_count(struct tm_fmt_out *out, const char *name, uint64_t count, const char *meaning)
{
	if (count != 0)
		tm_fmt_add(out, "  %-18s%12zu  %s\n", name, (size_t)count, meaning);
}

/* Errors and refused requests, if there were any. */
static void add_counts(struct tm_fmt_out *out)
{
	add_count(out, "wrong frees", tm_error_total(TM_ERROR_FOREIGN), "of no block: ignored");
	add_count(out, "interior frees", tm_error_total(TM_ERROR_INTERIOR),
		  "inside a block: ignored");
	add_count(out, "double frees", tm_error_total(TM_ERROR_DOUBLE), "ignored");
	add_count(out, "overruns", tm_error_total(TM_ERROR_OVERRUN), "found by guards");
	add_count(out, "uses after free", tm_error_total(TM_ERROR_USE_AFTER_FREE),
		  "found by guards");
	add_count(out, "size mismatches", tm_error_total(TM_ERROR_SIZE_MISMATCH),
		  "of sized deletes");
	add_count(out, "foreign frees", tm_foreign_handed_back(), "of libc's blocks: handed to it");
	add_count(out, "deepbind dropped", tm_dl_dropped(), "libraries bound as usual");
}

static void add_report(struct tm_fmt_out *out)
{
	struct tm_snapshot s = {0};
	int pid = tm_sys_getpid();

	size_t from = out->len;

	tm_fmt_add(out, "tiermalloc %s report of process %d (%s)", tm_version_string(), pid,
		   tm_root.program);
	tm_fmt_defuse(out, from);
	tm_pooling_verdict(out);
	tm_fmt_add_char(out, '\n');
	if (tm_root.server != TM_SERVER_ENGINE) {
		tm_fmt_add(out, "  passive: %s\n", tm_passive_reason());
		return;
	}
	if (tm_report_snapshot(&s) != 0) {
		tm_fmt_add(out, "  no figures: the program ended inside an allocation\n");
		return;
	}
	add_table(out, &s);
	add_tiers(out, &s);
	tm_pooling_report(out);
	if (atomic_load_explicit(&main_ended_pid, memory_order_acquire) == pid &&
	    main_ended.blocks != s.blocks)
		add_line(out, "live at main's end", main_ended.live_bytes, "before exit handlers");
	add_kernel_view(out, &s);
	add_counts(out);
	if (tm_module_cuda() != NULL)
		tm_module_cuda()->report(out);
}

/*
 * The text is not on the stack, which may be as small as a coroutine's or as `ulimit -s` says.
 * Whoever comes while the one buffer is in use maps another.
 */
int tm_report_write(int fd)
{
	static char only[TEXT_BYTES];
	static _Atomic bool in_use;
	bool is_only = !atomic_exchange_explicit(&in_use, true, memory_order_acquire);
	char *text = is_only ? only : tm_mem_map(TEXT_BYTES);
	struct tm_fmt_out out = {text, TEXT_BYTES, 0};

	if (text == NULL)
		return -ENOMEM;
	add_report(&out);
	int rc = tm_msg_write(fd, text, tm_fmt_stored(&out));
	if (is_only)
		atomic_store_explicit(&in_use, false, memory_order_release);
	else
		tm_mem_unmap_raw(text, TEXT_BYTES);
	return rc;
}

/* --- where and when --------------------------------------------------------------------------- */

static void add_host(struct tm_fmt_out *out)
{
	char host[65];
	long n = tm_proc_read("/proc/sys/kernel/hostname", host, sizeof(host));
	if (n > 0 && host[n - 1] == '\n')
		n--;
	tm_fmt_add_bytes(out, host, n < 0 ? 0 : (size_t)n);
}

/* The notation of core_pattern, core(5). */
bool tm_report_expand(const char *pattern, char *buf, size_t size)
{
	struct tm_fmt_out out = {buf, size, 0};
	for (; *pattern != '\0'; pattern++) {
		if (*pattern != '%' || pattern[1] == '\0') {
			tm_fmt_add_char(&out, *pattern);
			continue;
		}
		switch (*++pattern) {
		case 'p': tm_fmt_add(&out, "%d", tm_sys_getpid()); break;
		case 'h': add_host(&out); break;
		case 't': tm_fmt_add(&out, "%zu", (size_t)tm_clock_wall_s()); break;
		case '%': tm_fmt_add_char(&out, '%'); break;
		default:
			tm_fmt_add_char(&out, '%');
			tm_fmt_add_char(&out, *pattern);
			break;
		}
	}
	return out.len < size;
}

/*
 * An existing regular file is replaced only if it belongs to this user; a device or a pipe is
 * written to. Symbolic links are never followed: another user may have placed them.
 */
static int open_report(const char *path)
{
	struct stat st;
	int fd = tm_sys_open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	if (fd != -EEXIST)
		return fd;
	fd = tm_sys_open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd < 0)
		return fd;
	if (tm_sys_fstat(fd, &st) != 0)
		st.st_mode = 0;
	if (S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode))
		return fd;
	if (S_ISREG(st.st_mode) && st.st_uid == tm_sys_geteuid() && tm_sys_ftruncate(fd, 0) == 0)
		return fd;
	tm_sys_close(fd);
	return -EPERM;
}

/* Writes the process's own report, then runs the command for what is in the ledger. */
static int write_all(int fd)
{
	int rc = tm_report_write(fd);

	tm_ledger_end();
	tm_report_command(fd);
	return rc;
}

static void refused(const char *path, int error)
{
	tm_msg(TM_MSG_WARN, "cannot write the report '%s' (%s, error %d)", path,
	       tm_msg_reason(error), error);
}

static void write_to_file(const char *pattern)
{
	char path[1024];
	int fd;
	if (!tm_report_expand(pattern, path, sizeof(path))) {
		tm_msg(TM_MSG_WARN, "TIERMALLOC_REPORT_FILE: '%s' gives too long a name", pattern);
		return;
	}
	fd = tm_proc_may_open() ? open_report(path) : -EPERM;
	if (fd < 0) {
		refused(path, -fd);
		return;
	}
	int rc = write_all(fd);
	tm_sys_close(fd);
	if (rc < 0)
		refused(path, -rc);
}

/* Whether TIERMALLOC_TARGET matches the program's file or the name it was started by. */
static bool is_target(void)
{
	struct tm_str globs = tm_str_of(tm_root.options.target);
	char comm[17];
	if (globs.len == 0 || tm_parse_glob_list(globs, tm_str_of(tm_root.program)))
		return true;
	tm_proc_name(comm, sizeof(comm));
	return tm_parse_glob_list(globs, tm_str_of(comm));
}

/*
 * A child that lives in its parent's memory (vfork) and calls exit: the report is the parent's
 * (H47).
 */
static bool is_guest(void)
{
	return tm_fork_generation() == tm_root.generation && tm_sys_getpid() != tm_root.pid;
}

static TM_AT_START_CODE bool is_wanted(void)
{
	return tm_boot_is_ready() && !tm_root.secure && tm_root.options.report != TM_REPORT_NONE &&
	       !is_guest();
}

TM_AT_START_CODE void tm_report_main_ended(void)
{
	tm_alloc_debug_drain();
	if (!is_wanted() || atomic_load_explicit(&main_ended_pid, memory_order_acquire) != 0)
		return;
	if (tm_root.server == TM_SERVER_ENGINE && tm_report_snapshot(&main_ended) == 0)
		atomic_store_explicit(&main_ended_pid, tm_sys_getpid(), memory_order_release);
}

/* One report a process, however many threads and signal handlers call exit (H19). */
TM_AT_START_CODE void tm_report_at_exit(void)
{
	if (!is_wanted() || atomic_exchange_explicit(&done, 1, memory_order_acq_rel) != 0)
		return;
	if (!is_target())
		return;
	if (tm_root.options.report_file != NULL && tm_root.options.report_file[0] != '\0')
		write_to_file(tm_root.options.report_file);
	else if (tm_msg_has_stderr())
		(void)write_all(2);
}
