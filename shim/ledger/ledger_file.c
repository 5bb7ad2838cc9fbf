/* SPDX-License-Identifier: MIT */
#include "shim/ledger/ledger_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/vfs.h>

#include "shim/base/bits.h"
#include "shim/base/fmt.h"
#include "shim/base/parse.h"
#include "shim/boot.h"
#include "shim/heap/zone.h"
#include "shim/ledger/ledger.h"
#include "shim/ledger/modules.h"
#include "shim/os/clock.h"
#include "shim/os/proc.h"
#include "shim/os/sys.h"

#define ALL_BYTES_MAX ((uint64_t)256 << 20)
#define FS_SHARE 4u
/* With less space than this a ledger is not worthwhile. */
#define OWN_BYTES_MIN ((uint64_t)2 << 20)
/* Most ledgers of dead processes that are deleted at a time. */
#define REMOVED_MAX 64u
/* Of these, most that are found by one look at all ledgers. */
#define OLDEST_MAX 8u

/* --- the directory ---------------------------------------------------------------------------- */

void tm_ledger_file_default(char *directory, size_t size)
{
	tm_fmt(directory, size, "/dev/shm/tiermalloc-%u", (unsigned)tm_sys_geteuid());
}

/*
 * Opens the directory; creates it if missing. It must be ours, mode 0700. The descriptor, or
 * -errno.
 */
static int open_directory(const char *path, const char **ret_why)
{
	struct stat st;
	int rc = tm_sys_mkdirat(AT_FDCWD, path, 0700);
	int fd;

	if (rc != 0 && rc != -EEXIST) {
		if (rc == -ENOENT)
			*ret_why = "no such folder, nor the one above it";
		return rc;
	}
	fd = tm_sys_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return fd;
	rc = tm_sys_fstat(fd, &st);
	if (rc == 0 && (st.st_uid != (uid_t)tm_sys_geteuid() || (st.st_mode & 077) != 0)) {
		*ret_why = st.st_uid != (uid_t)tm_sys_geteuid()
				   ? "the folder is another user's"
				   : "others may enter the folder, run chmod 700 on it";
		rc = -EPERM;
	}
	if (rc == 0)
		return fd;
	tm_sys_close(fd);
	return rc;
}

/* A ledger of a dead process. */
struct dead {
	int64_t modified_s;
	uint64_t bytes;
	char name[48];
};

struct survey {
	int dir;
	uint64_t namespace; /* of this process */
	uint64_t bytes;     /* of all ledgers */
	bool choose;
	unsigned count; /* of dead processes, oldest first */
	struct dead oldest[OLDEST_MAX];
};

/* "PID-STARTTIME.tm" */
static bool parse_name(const char *name, uint64_t *ret_pid, uint64_t *ret_start)
{
	struct tm_str s = tm_str_of(name);
	size_t dash = 0;

	while (dash < s.len && name[dash] != '-')
		dash++;
	if (s.len < dash + 5 || !tm_str_ends(s, ".tm"))
		return false;
	return tm_parse_u64((struct tm_str){name, dash}, ret_pid) == 0 &&
	       tm_parse_u64((struct tm_str){name + dash + 1, s.len - dash - 4}, ret_start) == 0;
}

union start {
	struct tm_ledger_header header;
	char page[512];
};

/* Parses a ledger's file name; false: not a ledger. */
static bool read_start(int dir, const char *name, union start *ret)
{
	int fd = tm_sys_openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);

	if (fd < 0)
		return false;
	long n = tm_sys_pread(fd, ret, sizeof(*ret), 0);
	tm_sys_close(fd);
	return n == (long)sizeof(*ret) && ret->header.magic == TM_LEDGER_MAGIC;
}

/* Process ids of another pid namespace (container) can't be checked here. */
static bool is_dead(int dir, const char *name, uint64_t namespace)
{
	union start start;
	uint64_t pid, start_time, now;
	char path[48];

	if (!parse_name(name, &pid, &start_time) || pid > INT32_MAX ||
	    !read_start(dir, name, &start) || start.header.pid_namespace != namespace)
		return false;
	tm_fmt(path, sizeof(path), "/proc/%u/stat", (unsigned)pid);
	now = tm_proc_start_time_of(path);
	return now != start.header.start_time;
}

static void look_at(const char *name, void *arg)
{
	struct survey *s = arg;
	struct stat st;
	uint64_t bytes;
	unsigned at;

	if (!tm_str_ends(tm_str_of(name), ".tm") ||
	    tm_sys_fstatat(s->dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
		return;
	bytes = (uint64_t)st.st_blocks * 512;
	s->bytes += bytes;
	if (!s->choose ||
	    (s->count == OLDEST_MAX && st.st_mtim.tv_sec >= s->oldest[OLDEST_MAX - 1].modified_s) ||
	    tm_str_of(name).len >= sizeof(s->oldest[0].name) ||
	    !is_dead(s->dir, name, s->namespace))
		return;
	at = s->count < OLDEST_MAX ? s->count++ : OLDEST_MAX - 1;
	for (; at > 0 && s->oldest[at - 1].modified_s > st.st_mtim.tv_sec; at--)
		s->oldest[at] = s->oldest[at - 1];
	s->oldest[at].modified_s = st.st_mtim.tv_sec;
	s->oldest[at].bytes = bytes;
	tm_fmt(s->oldest[at].name, sizeof(s->oldest[at].name), "%s", name);
}

static void survey(struct survey *s)
{
	s->bytes = 0;
	s->count = 0;
	tm_proc_each_name(s->dir, look_at, s);
}

/*
 * Deletes ledgers of dead processes until the sum of all is at most this, or none is left. Only then
 * are ledgers opened: there may be hundreds, and a thread of the program waits.
 */
static void shrink(struct survey *s, uint64_t bytes_max)
{
	unsigned removed = 0;

	survey(s);
	s->choose = true;
	while (s->bytes > bytes_max && removed < REMOVED_MAX) {
		survey(s);
		if (s->count == 0)
			return;
		for (unsigned i = 0; i < s->count && s->bytes > bytes_max; i++, removed++) {
			if (tm_sys_unlinkat(s->dir, s->oldest[i].name, 0) != 0)
				return;
			s->bytes -= s->oldest[i].bytes;
		}
	}
}

static uint64_t pid_namespace(void)
{
	struct stat st;

	return tm_sys_fstatat(AT_FDCWD, "/proc/self/ns/pid", &st, 0) == 0 ? st.st_ino : 0;
}

/* Bytes that a new ledger may occupy. */
static uint64_t make_room(int dir, enum tm_ledger_room room)
{
	struct statfs fs;
	uint64_t limit = UINT64_MAX;
	struct survey s = {.dir = dir, .namespace = pid_namespace()};

	if (tm_syscall6(SYS_fstatfs, dir, (long)(uintptr_t)&fs, 0, 0, 0, 0) == 0 &&
	    fs.f_blocks != 0)
		limit = (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize / FS_SHARE;
	if (room == TM_LEDGER_ROOM_ASKED)
		return limit;
	if (limit > ALL_BYTES_MAX)
		limit = ALL_BYTES_MAX;
	shrink(&s, limit - tm_bits_min(limit, OWN_BYTES_MIN));
	return s.bytes + OWN_BYTES_MIN > limit ? 0 : limit - s.bytes;
}

/* --- the file --------------------------------------------------------------------------------- */

/* Exceeding RLIMIT_FSIZE would not be an error but a fatal signal (SIGXFSZ). */
static bool may_be_long(void)
{
	struct rlimit limit;

	return tm_syscall6(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)(uintptr_t)&limit, 0, 0) == 0 &&
	       limit.rlim_cur >= TM_LEDGER_BYTES;
}

/*
 * Whether an existing file of the same name may be replaced: it is of this process before its exec,
 * or of one that is long gone, but not of another container's process.
 */
static bool is_own(int dir, const char *name)
{
	union start start;

	return !read_start(dir, name, &start) || start.header.pid_namespace == pid_namespace();
}

static int create_in(int dir, const char *name)
{
	const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int fd = tm_sys_openat(dir, name, flags, 0600);

	if (fd == -EEXIST && is_own(dir, name) && tm_sys_unlinkat(dir, name, 0) == 0)
		fd = tm_sys_openat(dir, name, flags, 0600);
	if (fd < 0)
		return fd;
	int rc = tm_sys_ftruncate(fd, (long)TM_LEDGER_BYTES);
	if (rc == 0)
		return fd;
	tm_sys_close(fd);
	tm_sys_unlinkat(dir, name, 0);
	return rc;
}

/*
 * Makes the path absolute: it is opened again later, after the program may have changed directory.
 */
static void set_path(struct tm_ledger_file *f, const char *directory, const char *name)
{
	char here[sizeof(f->path)];

	if (directory[0] == '/' ||
	    tm_syscall6(SYS_getcwd, (long)(uintptr_t)here, sizeof(here), 0, 0, 0, 0) <= 0 ||
	    here[0] != '/')
		tm_fmt(f->path, sizeof(f->path), "%s/%s", directory, name);
	else
		tm_fmt(f->path, sizeof(f->path), "%s/%s/%s", here, directory, name);
}

int tm_ledger_file_create(struct tm_ledger_file *f, const char *directory, enum tm_ledger_room room)
{
	char name[64];
	int dir, fd;

	f->pid = (uint32_t)tm_sys_getpid();
	f->start_time = tm_proc_start_time();
	tm_fmt(name, sizeof(name), "%u-%llu.tm", f->pid, (unsigned long long)f->start_time);
	set_path(f, directory, name);
	f->why = NULL;
	if (!may_be_long()) {
		f->why = "the limit of the length of files is too low: ulimit -f";
		return -EFBIG;
	}
	dir = open_directory(directory, &f->why);
	if (dir < 0)
		return dir;
	f->limit_bytes = make_room(dir, room);
	if (f->limit_bytes < OWN_BYTES_MIN && room == TM_LEDGER_ROOM_SHARED) {
		f->why = "other ledgers take the room there";
		fd = -ENOSPC;
	} else {
		fd = create_in(dir, name);
	}
	if (fd == -EEXIST) {
		/* containers that share the directory may have equal pids and start times */
		tm_fmt(name, sizeof(name), "%u-%llu%010llu.tm", f->pid,
		       (unsigned long long)f->start_time, (unsigned long long)pid_namespace());
		set_path(f, directory, name);
		fd = create_in(dir, name);
	}
	tm_sys_close(dir);
	return fd;
}

/* --- who it is -------------------------------------------------------------------------------- */

static void parse_uuid(const char *text, uint64_t *ret_words)
{
	unsigned digits = 0;

	for (; *text != '\0' && digits < 32; text++) {
		unsigned c = (unsigned char)*text;

		if (c == '-')
			continue;
		c = c <= '9' ? c - '0' : c - 'a' + 10;
		ret_words[digits / 16] = ret_words[digits / 16] << 4 | (c & 15);
		digits++;
	}
}

/* Boot id, pid namespace and program: a process id alone is reused. */
void tm_ledger_file_describe(struct tm_ledger_header *h, const struct tm_ledger_file *file)
{
	char text[48];

	h->version = TM_LEDGER_VERSION;
	h->pid = file->pid;
	h->start_time = file->start_time;
	h->zone_base = tm_zone.base;
	h->page_bytes = TM_PAGE_BYTES;
	h->begun_unix_s = tm_clock_wall_s();
	h->begun_unix_ns = tm_clock_wall_ns();
	h->begun_ms = tm_clock_ms();
	h->heartbeat_ms = h->begun_ms;
	tm_fmt(h->program, sizeof(h->program), "%s", tm_root.program);
	if (tm_proc_read("/proc/sys/kernel/random/boot_id", text, sizeof(text)) > 0)
		parse_uuid(text, h->boot_id);
	if (tm_proc_may_open())
		h->pid_namespace = pid_namespace();
	h->parent = (uint32_t)tm_syscall6(SYS_getppid, 0, 0, 0, 0, 0, 0);
	tm_fmt(text, sizeof(text), "/proc/%u/stat", h->parent);
	h->parent_start_time = tm_proc_start_time_of(text);
	long n = 0;
	for (size_t room = TM_PAGE_BYTES; room <= TM_LEDGER_COMMAND_BYTES; room *= 4) {
		char *command = tm_ledger_area(TM_LEDGER_COMMAND_AT, room);

		if (command != NULL)
			n = tm_proc_read("/proc/self/cmdline", command, room);
		if (command == NULL || n < (long)room - 1)
			break;
	}
	h->command_bytes = n < 0 ? 0 : (uint32_t)n;
	uintptr_t headers = tm_proc_auxv(AT_PHDR) & ~(TM_PAGE_BYTES - 1);
	h->exe_build_id_bytes = headers == 0 ? 0
					     : tm_modules_build_id(headers, h->exe_build_id,
								   sizeof(h->exe_build_id));
}
