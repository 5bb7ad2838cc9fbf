/* SPDX-License-Identifier: MIT */
/* proc: see proc.h. */
#include "shim/os/proc.h"

#include <elf.h>
#include <errno.h>
#include <linux/prctl.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#include "shim/base/bits.h"
#include "shim/base/fmt.h"
#include "shim/base/parse.h"
#include "shim/os/mem.h"
#include "shim/os/sys.h"

#define PATH_LEN_MAX 512

static _Atomic bool forbidden;

void tm_proc_forbid_files(void)
{
	atomic_store_explicit(&forbidden, true, memory_order_relaxed);
}

bool tm_proc_may_open(void)
{
	return !atomic_load_explicit(&forbidden, memory_order_relaxed);
}

/* A file named by the user may be a pipe: longest wait for its writer. */
static bool has_more(int fd)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	struct timespec limit = {.tv_sec = 1};

	return tm_syscall6(SYS_ppoll, (long)(uintptr_t)&ready, 1, (long)(uintptr_t)&limit, 0, 0,
			   0) > 0;
}

static bool is_pipe(int fd)
{
	struct stat st;

	return tm_sys_fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

TM_AT_START_CODE long tm_proc_read(const char *path, char *buf, size_t size)
{
	size_t len = 0;
	int fd = tm_proc_may_open() ? tm_sys_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0)
				    : -EPERM;

	if (fd < 0)
		return fd;
	while (len + 1 < size) {
		long got = tm_sys_read(fd, buf + len, size - 1 - len);

		if (got == -EINTR || (got == -EAGAIN && has_more(fd)))
			continue;
		if (got == 0 && len == 0 && is_pipe(fd)) /* no writer yet */
			got = -EPIPE;
		if (got < 0) {
			tm_sys_close(fd);
			return got;
		}
		if (got == 0)
			break;
		len += (size_t)got;
	}
	buf[len] = '\0';
	tm_sys_close(fd);
	return (long)len;
}

long tm_proc_text(const char *path, char **ret_text)
{
	char *text = tm_mem_map(TM_PROC_TEXT_BYTES);
	long len = text ? tm_proc_read(path, text, TM_PROC_TEXT_BYTES) : -ENOMEM;

	if (len >= 0)
		*ret_text = text;
	else if (text)
		tm_proc_text_free(text);
	return len;
}

void tm_proc_text_free(char *text)
{
	(void)tm_mem_unmap_raw(text, TM_PROC_TEXT_BYTES);
}

/* As the kernel writes it (getdents64(2)). */
struct entry {
	uint64_t inode;
	int64_t offset;
	uint16_t bytes;
	uint8_t type;
	char name[];
};

void tm_proc_each_name(int dir, void (*see)(const char *name, void *arg), void *arg)
{
	TM_ALIGNED(8) char buf[1024]; /* three of the longest names: small, as stacks may be */
	long n;

	tm_sys_lseek(dir, 0, 0);
	while ((n = tm_syscall6(SYS_getdents64, dir, (long)(uintptr_t)buf, sizeof(buf), 0, 0, 0)) >
	       0) {
		for (long at = 0; at < n;) {
			const struct entry *e = (const struct entry *)(const void *)(buf + at);

			see(e->name, arg);
			at += e->bytes;
		}
	}
}

static struct tm_str leading_number(const char *text)
{
	struct tm_str s = {text, 0};

	while (s.at[s.len] >= '0' && s.at[s.len] <= '9')
		s.len++;
	return s;
}

uint64_t tm_proc_memory_bytes(void)
{
	struct sysinfo info;

	return tm_syscall6(SYS_sysinfo, (long)(uintptr_t)&info, 0, 0, 0, 0, 0) == 0
		       ? (uint64_t)info.totalram * info.mem_unit
		       : UINT64_MAX;
}

uint64_t tm_proc_available_bytes(void)
{
	static const char key[] = "MemAvailable:";
	char buf[256];
	struct tm_str rest, line;
	uint64_t kib;

	if (!tm_proc_may_open() || tm_proc_read("/proc/meminfo", buf, sizeof(buf)) < 0)
		return UINT64_MAX;
	rest = tm_str_of(buf);
	while (tm_parse_next(&rest, '\n', &line)) {
		if (!tm_str_starts(line, key))
			continue;
		line = tm_str_trim(
			(struct tm_str){line.at + sizeof(key) - 1, line.len - (sizeof(key) - 1)});
		for (size_t i = 0; i < line.len; i++)
			if (line.at[i] == ' ')
				line.len = i;
		return tm_parse_u64(line, &kib) == 0 ? kib << 10 : UINT64_MAX;
	}
	return UINT64_MAX;
}

int tm_proc_read_u64(const char *path, uint64_t *ret_value)
{
	char buf[64];
	long len = tm_proc_read(path, buf, sizeof(buf));

	if (len < 0)
		return (int)len;
	if (tm_str_starts(tm_str_of(buf), "max")) {
		*ret_value = UINT64_MAX;
		return 0;
	}
	return tm_parse_u64(leading_number(buf), ret_value);
}

TM_AT_START_CODE int tm_proc_read_choice(const char *path, char *buf, size_t size)
{
	char text[256];
	long len = tm_proc_read(path, text, sizeof(text));
	struct tm_str rest = {text, len > 0 ? (size_t)len : 0};
	struct tm_str word;

	if (len < 0)
		return (int)len;
	if (!tm_parse_next(&rest, '[', &word) || !tm_parse_next(&rest, ']', &word))
		return -EINVAL;
	if (tm_fmt(buf, size, "%.*s", (int)word.len, word.at) >= size)
		return -ERANGE;
	return 0;
}

/* getauxval only reads a copy that ld.so made before any library ran; restores errno. */
TM_AT_START_CODE unsigned long tm_proc_auxv(unsigned long type)
{
	int saved = errno;
	unsigned long value = getauxval(type);

	errno = saved;
	return value;
}

TM_AT_START_CODE bool tm_proc_is_secure(void)
{
	return tm_proc_auxv(AT_SECURE) != 0;
}

TM_AT_START_CODE size_t tm_proc_page_bytes(void)
{
	static _Atomic size_t cached;
	size_t bytes = atomic_load_explicit(&cached, memory_order_relaxed);

	if (bytes == 0) {
		bytes = tm_proc_auxv(AT_PAGESZ);
		if (bytes == 0)
			bytes = TM_PAGE_BYTES;
		atomic_store_explicit(&cached, bytes, memory_order_relaxed);
	}
	return bytes;
}

/* "size resident shared ..." in pages of the kernel. */
struct tm_proc_memory tm_proc_memory(void)
{
	char text[128];
	uint64_t word[3] = {0};
	long n = tm_proc_read("/proc/self/statm", text, sizeof(text));
	struct tm_str rest = {text, n < 0 ? 0 : (size_t)n};

	for (unsigned i = 0; i < 3; i++) {
		size_t length = 0;

		while (length < rest.len && rest.at[length] != ' ')
			length++;
		(void)tm_parse_u64((struct tm_str){rest.at, length}, &word[i]);
		if (length < rest.len)
			length++;
		rest = (struct tm_str){rest.at + length, rest.len - length};
	}
	return (struct tm_proc_memory){word[1] * tm_proc_page_bytes(),
				       word[2] * tm_proc_page_bytes()};
}

/* The value of a line "name:  value kB"; false: no such line. */
static bool find_field(const char *text, const char *name, uint64_t *ret_value)
{
	struct tm_str rest = tm_str_of(text);
	struct tm_str line, key;

	while (tm_parse_next(&rest, '\n', &line)) {
		if (!tm_parse_next(&line, ':', &key) || !tm_str_is(key, name))
			continue;
		line = tm_str_trim(line);
		return tm_parse_u64(leading_number(line.at), ret_value) == 0;
	}
	return false;
}

static uint64_t field(const char *text, const char *name)
{
	uint64_t value = 0;

	(void)find_field(text, name, &value);
	return value;
}

static uint64_t field_kb(const char *text, const char *name)
{
	return field(text, name) << 10;
}

int tm_proc_status(struct tm_proc_status *ret_status)
{
	char *text;
	long len = tm_proc_text("/proc/self/status", &text);

	if (len < 0)
		return (int)len;
	*ret_status = (struct tm_proc_status){
		.vm_bytes = field_kb(text, "VmSize"),
		.vm_peak_bytes = field_kb(text, "VmPeak"),
		.rss_bytes = field_kb(text, "VmRSS"),
		.rss_peak_bytes = field_kb(text, "VmHWM"),
		.rss_anon_bytes = field_kb(text, "RssAnon"),
		.rss_file_bytes = field_kb(text, "RssFile"),
		.rss_shmem_bytes = field_kb(text, "RssShmem"),
		.locked_bytes = field_kb(text, "VmLck"),
		.swap_bytes = field_kb(text, "VmSwap"),
		.threads = field(text, "Threads"),
		.seccomp = field(text, "Seccomp"),
	};
	tm_proc_text_free(text);
	return 0;
}

int tm_proc_rollup(struct tm_proc_rollup *ret_rollup)
{
	char *text;
	long len = tm_proc_text("/proc/self/smaps_rollup", &text);

	if (len < 0)
		return (int)len;
	*ret_rollup = (struct tm_proc_rollup){
		.rss_bytes = field_kb(text, "Rss"),
		.pss_bytes = field_kb(text, "Pss"),
		.anon_bytes = field_kb(text, "Anonymous"),
		.anon_huge_bytes = field_kb(text, "AnonHugePages"),
		.lazy_free_bytes = field_kb(text, "LazyFree"),
		.private_dirty_bytes = field_kb(text, "Private_Dirty"),
	};
	tm_proc_text_free(text);
	return 0;
}

/* The part of a .../stat file after the name, which may itself contain blanks and parentheses. */
static const char *stat_after_name(const char *text)
{
	const char *after = NULL;

	for (; *text; text++) {
		if (text[0] == ')' && text[1] == ' ')
			after = text + 2;
	}
	return after;
}

uint64_t tm_proc_start_time_of(const char *path)
{
	char text[512]; /* 22 fields take 480 at most */
	const char *after = NULL;
	struct tm_str rest, item;
	uint64_t value = 0;

	if (tm_proc_read(path, text, sizeof(text)) > 0)
		after = stat_after_name(text);
	if (after == NULL)
		return 0;
	rest = tm_str_of(after);
	/* "after" begins with field 3, the state; the start is field 22. */
	for (unsigned int number = 3; tm_parse_next(&rest, ' ', &item); number++) {
		if (number == 22 && tm_parse_u64(item, &value) == 0)
			return value;
	}
	return 0;
}

uint64_t tm_proc_start_time(void)
{
	return tm_proc_start_time_of("/proc/self/stat");
}

void tm_proc_name(char *buf, size_t size)
{
	long len = tm_proc_read("/proc/self/comm", buf, size);

	if (len <= 0)
		tm_fmt(buf, size, "?");
	else if (buf[len - 1] == '\n')
		buf[len - 1] = '\0';
}

void tm_proc_thread_name(char name[16])
{
	if (tm_sys_prctl(PR_GET_NAME, (unsigned long)(uintptr_t)name, 0, 0) != 0)
		name[0] = '\0';
	name[15] = '\0';
}

/* Smallest value of root/path/file, going up to root. */
static uint64_t smallest_upwards(const char *root, struct tm_str path, const char *file)
{
	char name[PATH_LEN_MAX];
	uint64_t smallest = UINT64_MAX;
	uint64_t value;

	for (;;) {
		size_t len =
			tm_fmt(name, sizeof(name), "%s%.*s/%s", root, (int)path.len, path.at, file);

		if (len < sizeof(name) && tm_proc_read_u64(name, &value) == 0 && value < smallest)
			smallest = value;
		if (path.len == 0)
			return smallest;
		while (path.len && path.at[path.len - 1] != '/')
			path.len--;
		if (path.len)
			path.len--;
	}
}

uint64_t tm_proc_cgroup_limit(void)
{
	char *text;
	long len = tm_proc_text("/proc/self/cgroup", &text);
	uint64_t smallest = UINT64_MAX;
	struct tm_str rest, line, number, controllers, item;

	if (len < 0)
		return smallest;
	rest = (struct tm_str){text, (size_t)len};
	while (tm_parse_next(&rest, '\n', &line)) {
		uint64_t value = UINT64_MAX;

		if (!tm_parse_next(&line, ':', &number) || !tm_parse_next(&line, ':', &controllers))
			continue;
		if (line.len == 1)
			line.len = 0; /* "/" */
		if (controllers.len == 0) {
			value = smallest_upwards("/sys/fs/cgroup", line, "memory.max");
			value = tm_bits_min(
				value, smallest_upwards("/sys/fs/cgroup", line, "memory.high"));
		}
		while (tm_parse_next(&controllers, ',', &item)) {
			if (tm_str_is(item, "memory"))
				value = smallest_upwards("/sys/fs/cgroup/memory", line,
							 "memory.limit_in_bytes");
		}
		smallest = tm_bits_min(smallest, value);
	}
	tm_proc_text_free(text);
	/* v1 writes "no limit" as the largest multiple of a page. */
	return smallest >= (uint64_t)1 << 62 ? UINT64_MAX : smallest;
}

TM_AT_START_CODE size_t tm_proc_memory_limit(void)
{
	static const int kinds[] = {RLIMIT_AS, RLIMIT_DATA};
	size_t bytes = SIZE_MAX;

	for (size_t i = 0; i < TM_ARRAY_LEN(kinds); i++) {
		struct tm_sys_limit limit;

		if (tm_sys_getrlimit(kinds[i], &limit) == 0)
			bytes = tm_bits_min(bytes, limit.soft);
	}
	return bytes;
}
