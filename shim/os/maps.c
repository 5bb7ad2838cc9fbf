/* SPDX-License-Identifier: MIT */
/* maps: see maps.h. */
#include "shim/os/maps.h"

#include <errno.h>

#include "shim/base/fmt.h"
#include "shim/base/hash.h"
#include "shim/base/parse.h"
#include "shim/os/mem.h"
#include "shim/os/proc.h"
#include "shim/os/sys.h"

/* More than a line with the longest path; a longer line is truncated. */
#define LINES_BYTES TM_MAPS_ROOM_BYTES

/* Line reader. Its buffer is mapped: callers may be on a coroutine's small stack (H26). */
struct lines {
	int fd;
	size_t used, at;
	char *buf;
	bool lent;
};

static bool next_line(struct lines *l, struct tm_str *ret_line)
{
	for (;;) {
		size_t i;
		for (i = l->at; i < l->used; i++) {
			if (l->buf[i] == '\n') {
				*ret_line = (struct tm_str){l->buf + l->at, i - l->at};
				l->at = i + 1;
				return true;
			}
		}
		if (l->at == 0 && l->used == LINES_BYTES)
			l->used = 0;
		__builtin_memmove(l->buf, l->buf + l->at, l->used - l->at);
		l->used -= l->at;
		l->at = 0;
		long n = tm_sys_read(l->fd, l->buf + l->used, LINES_BYTES - l->used);
		if (n == -EINTR)
			continue;
		if (n <= 0)
			return false;
		l->used += (size_t)n;
	}
}

static bool hex_prefix(struct tm_str *s, uint64_t *ret)
{
	size_t i;
	uint64_t value = 0;
	for (i = 0; i < s->len; i++) {
		unsigned c = (unsigned char)s->at[i], digit;
		if (c >= '0' && c <= '9')
			digit = c - '0';
		else if (c >= 'a' && c <= 'f')
			digit = c - 'a' + 10;
		else
			break;
		value = value << 4 | digit;
	}
	if (i == 0)
		return false;
	*s = (struct tm_str){s->at + i, s->len - i};
	*ret = value;
	return true;
}

/* "7f0000000000-7f0000200000 rw-p ..." */
static bool is_range(struct tm_str line, struct tm_maps_range *ret_range)
{
	uint64_t start, end;
	if (!hex_prefix(&line, &start) || line.len == 0 || line.at[0] != '-')
		return false;
	line = (struct tm_str){line.at + 1, line.len - 1};
	if (!hex_prefix(&line, &end) || line.len == 0 || line.at[0] != ' ')
		return false;
	*ret_range = (struct tm_maps_range){start, end, line.len > 1 && line.at[1] == 'r'};
	return true;
}

/* "Rss:                  12 kB" */
static uint64_t kilobytes(struct tm_str line, const char *key)
{
	uint64_t value;
	size_t i, skip = 0;
	if (!tm_str_starts(line, key))
		return 0;
	while (key[skip] != '\0')
		skip++;
	line = tm_str_trim((struct tm_str){line.at + skip, line.len - skip});
	for (i = 0; i < line.len && line.at[i] != ' '; i++)
		;
	return tm_parse_u64((struct tm_str){line.at, i}, &value) == 0 ? value << 10 : 0;
}

static int open_lines_in(struct lines *l, const char *path, char *room)
{
	l->used = l->at = 0;
	l->lent = room != NULL;
	l->fd = tm_proc_may_open() ? tm_sys_open(path, O_RDONLY, 0) : -EPERM;
	if (l->fd < 0)
		return l->fd;
	l->buf = room != NULL ? room : tm_mem_map(LINES_BYTES);
	if (l->buf != NULL)
		return 0;
	tm_sys_close(l->fd);
	return -ENOMEM;
}

static int open_lines(struct lines *l, const char *path)
{
	return open_lines_in(l, path, NULL);
}

static void close_lines(struct lines *l)
{
	tm_sys_close(l->fd);
	if (!l->lent)
		(void)tm_mem_unmap_raw(l->buf, LINES_BYTES);
}

int tm_maps_find(uintptr_t address, struct tm_maps_range *ret_range)
{
	struct tm_maps_range range;
	struct tm_str line;
	struct lines l;
	int err = open_lines(&l, "/proc/self/maps");
	if (err != 0)
		return err;
	err = -ENOENT;
	while (err != 0 && next_line(&l, &line)) {
		if (!is_range(line, &range) || address >= range.end)
			continue;
		if (address < range.start)
			break;
		*ret_range = range;
		err = 0;
	}
	close_lines(&l);
	return err;
}

/* The path of a line, to its end; empty: no file. */
static struct tm_str path_of(struct tm_str line)
{
	size_t i = 0;

	while (i < line.len && line.at[i] != '/')
		i++;
	return (struct tm_str){line.at + i, line.len - i};
}

/* "start-end perms OFFSET ..." */
static bool offset_is_zero(struct tm_str line)
{
	size_t i, word = 0;

	for (i = 0; i < line.len && word < 2; i++)
		if (line.at[i] == ' ')
			word++;
	for (; i < line.len && line.at[i] == '0'; i++)
		;
	return i < line.len && line.at[i] == ' ';
}

int tm_maps_object(uintptr_t address, struct tm_maps_range *ret_range, char *path, size_t size)
{
	struct tm_maps_range range, object = {0, 0, false};
	uint64_t file = 0;
	struct tm_str line;
	struct lines l;
	bool inside = false;
	int err = open_lines(&l, "/proc/self/maps");
	if (err != 0)
		return err;
	while (next_line(&l, &line)) {
		bool is_line = is_range(line, &range);
		struct tm_str name = path_of(line);

		if (!is_line || name.len == 0)
			continue; /* a .bss, or a gap */
		uint64_t hash = tm_hash_bytes(name.at, name.len);
		if (hash != file || offset_is_zero(line)) {
			if (inside)
				break;
			object = offset_is_zero(line) ? range : (struct tm_maps_range){0, 0, false};
			file = hash;
		}
		if (object.end != 0)
			object.end = range.end;
		if (address < range.start || address >= range.end || object.end == 0)
			continue;
		inside = true;
		if (size != 0) {
			size_t n = name.len < size ? name.len : size - 1;

			__builtin_memcpy(path, name.at, n);
			path[n] = '\0';
		}
	}
	close_lines(&l);
	if (!inside)
		return -ENOENT;
	*ret_range = object;
	return 0;
}

int tm_maps_code(const char *name, void (*see)(uintptr_t start, void *arg), void *arg)
{
	struct tm_maps_range range;
	struct tm_str line, file;
	struct lines l;
	size_t i;
	int err = open_lines(&l, "/proc/self/maps");
	if (err != 0)
		return err;
	while (next_line(&l, &line)) {
		file = path_of(line);
		for (i = file.len; i > 0 && file.at[i - 1] != '/'; i--)
			continue;
		file = (struct tm_str){file.at + i, file.len - i};
		for (i = 0; i < line.len && line.at[i] != ' '; i++)
			continue;
		if (tm_str_starts(file, name) && is_range(line, &range) && line.len - i > 3 &&
		    line.at[i + 3] == 'x')
			see(range.start, arg);
	}
	close_lines(&l);
	return 0;
}

/* "start-end rw-p offset device inode path" */
static bool read_line(struct tm_str line, struct tm_maps_line *ret)
{
	struct tm_maps_range range;
	size_t at = 0;

	if (!is_range(line, &range))
		return false;
	while (at < line.len && line.at[at] != ' ')
		at++;
	if (line.len - at < 6)
		return false;
	struct tm_str path = path_of(line);
	size_t last = line.len;
	while (last > 0 && line.at[last - 1] != ' ')
		last--;
	*ret = (struct tm_maps_line){
		.start = range.start,
		.end = range.end,
		.readable = line.at[at + 1] == 'r',
		.writable = line.at[at + 2] == 'w',
		.shared = line.at[at + 4] == 's',
		.special = tm_str_starts(path, "/dev/") ||
			   tm_str_starts((struct tm_str){line.at + last, line.len - last}, "[v"),
	};
	return true;
}

int tm_maps_each(void (*see)(const struct tm_maps_line *line, void *arg), void *arg)
{
	return tm_maps_each_of(&(struct tm_maps_source){"/proc/self/maps", NULL}, see, arg);
}

int tm_maps_each_of(const struct tm_maps_source *source,
		    void (*see)(const struct tm_maps_line *line, void *arg), void *arg)
{
	struct tm_maps_line mapping;
	struct tm_str line;
	struct lines l;
	int err = open_lines_in(&l, source->path, source->room);
	if (err != 0)
		return err;
	while (next_line(&l, &line))
		if (read_line(line, &mapping))
			see(&mapping, arg);
	close_lines(&l);
	return 0;
}

/* --- a sheet ---------------------------------------------------------------------------------- */

#define GUARD_MAX ((uintptr_t)1 << 20)

struct sheet {
	struct tm_fmt_out out;
	size_t whole; /* length of the text of completed mappings */
	bool wanted;  /* the current mapping is to be written */
	bool private; /* and it is private, anonymous and writable */
	uint64_t rss;
	struct tm_maps_range range;
	struct tm_maps_sheet *ret;
};

static void end_mapping(struct sheet *s)
{
	if (s->private && s->rss != 0 && s->ret->tell != NULL)
		s->ret->tell(&s->out, &s->range);
	s->private = false;
	s->rss = 0;
	if (s->out.len >= s->out.size)
		s->ret->cut = true;
	else if (s->wanted)
		s->whole = s->out.len;
	s->out.len = s->whole;
	s->wanted = false;
}

/* Anonymous and unnamed. */
static bool is_nameless(struct tm_str line)
{
	return path_of(line).len == 0 && (line.len == 0 || line.at[line.len - 1] != ']');
}

static struct tm_str from_permissions(struct tm_str line)
{
	size_t at = 0;

	while (at < line.len && line.at[at] != ' ')
		at++;
	return (struct tm_str){line.at + at, line.len - at};
}

static bool is_guard(struct tm_str line, const struct tm_maps_range *range)
{
	return tm_str_starts(from_permissions(line), " ---p") && path_of(line).len == 0 &&
	       range->end - range->start <= GUARD_MAX;
}

static void add_flags(struct sheet *s, struct tm_str line)
{
	bool some = false;

	for (size_t i = 0; i + 3 <= line.len; i++) {
		struct tm_str flag = {line.at + i, 3};

		if (!tm_str_is(flag, " nr") && !tm_str_is(flag, " io") && !tm_str_is(flag, " pf"))
			continue;
		if (!some)
			tm_fmt_add(&s->out, "VmFlags:");
		tm_fmt_add_bytes(&s->out, flag.at, flag.len);
		some = true;
	}
	if (some)
		tm_fmt_add_char(&s->out, '\n');
}

static void add_figure(struct sheet *s, const char *key, uint64_t bytes)
{
	if (bytes != 0)
		tm_fmt_add(&s->out, "%s %llu kB\n", key, (unsigned long long)(bytes >> 10));
}

int tm_maps_write_sheet(char *text, size_t room, uintptr_t start, uintptr_t end,
			struct tm_maps_sheet *ret)
{
	struct sheet s = {.out = {text, room, 0}, .ret = ret};
	struct tm_maps_range range = {0, 0, false};
	struct tm_str line;
	struct lines l;
	int err = open_lines(&l, "/proc/self/smaps");

	if (err != 0)
		return err;
	*ret = (struct tm_maps_sheet){.tell = ret->tell};
	while (next_line(&l, &line)) {
		if (is_range(line, &range)) {
			end_mapping(&s);
			tm_fmt_add_bytes(&s.out, line.at, line.len);
			tm_fmt_add_char(&s.out, '\n');
			s.wanted = is_guard(line, &range);
			s.private = tm_str_starts(from_permissions(line), " rw-p") &&
				    is_nameless(line) && (range.end <= start || range.start >= end);
			s.range = range;
			continue;
		}
		uint64_t rss = kilobytes(line, "Rss:"), huge = kilobytes(line, "AnonHugePages:");
		s.wanted |= rss != 0;
		ret->resident_bytes += rss;
		s.rss += rss;
		if (range.start >= start && range.end <= end) {
			ret->within.resident_bytes += rss;
			ret->within.huge_bytes += huge;
		}
		add_figure(&s, "Rss:", rss);
		add_figure(&s, "AnonHugePages:", huge);
		add_figure(&s, "Swap:", kilobytes(line, "Swap:"));
		if (tm_str_starts(line, "VmFlags:"))
			add_flags(&s, line);
	}
	end_mapping(&s);
	ret->bytes = s.whole;
	close_lines(&l);
	return 0;
}

int tm_maps_resident(uintptr_t start, uintptr_t end, struct tm_maps_resident *ret)
{
	struct tm_maps_resident sum = {0, 0};
	struct tm_maps_range range = {0, 0, false};
	struct tm_str line;
	struct lines l;
	int err = open_lines(&l, "/proc/self/smaps");
	if (err != 0)
		return err;
	while (next_line(&l, &line)) {
		if (is_range(line, &range) || range.start < start || range.end > end)
			continue;
		sum.resident_bytes += kilobytes(line, "Rss:");
		sum.huge_bytes += kilobytes(line, "AnonHugePages:");
	}
	close_lines(&l);
	*ret = sum;
	return 0;
}

/* --- files that are only read ----------------------------------------------------------------- */

struct reading {
	struct tm_maps_file file;
	bool fits;
	char path[128];
	uint64_t least_bytes;
	void (*see)(const struct tm_maps_file *file, void *arg);
	void *arg;
};

static void begin_file(struct reading *r, struct tm_str line, const struct tm_maps_range *range)
{
	struct tm_str path = path_of(line);
	size_t at = 0;

	while (at < line.len && line.at[at] != ' ')
		at++;
	r->fits = range->end - range->start >= r->least_bytes && path.len != 0 &&
		  tm_str_starts((struct tm_str){line.at + at, line.len - at}, " r--") &&
		  !tm_str_starts(path, "/dev/") && !tm_parse_glob(tm_str_of("*.so"), path) &&
		  !tm_parse_glob(tm_str_of("*.so.*"), path);
	if (path.len > sizeof(r->path))
		path = (struct tm_str){path.at + path.len - sizeof(r->path), sizeof(r->path)};
	__builtin_memcpy(r->path, path.at, path.len);
	r->file = (struct tm_maps_file){range->start, range->end, 0, {r->path, path.len}};
}

static void end_file(struct reading *r)
{
	if (r->fits)
		r->see(&r->file, r->arg);
	r->fits = false;
}

/*
 * Excludes mappings with private pages, which would be lost, and locked, hugetlb, PFN-mapped and
 * userfaultfd ones.
 */
static bool has_bar(struct tm_str line)
{
	static const char *const bars[] = {" lo", " ht", " io", " pf", " um", " uw"};

	for (size_t i = 0; i + 3 <= line.len; i++)
		for (size_t k = 0; k < sizeof(bars) / sizeof(bars[0]); k++)
			if (tm_str_is((struct tm_str){line.at + i, 3}, bars[k]))
				return true;
	return false;
}

int tm_maps_files(uint64_t least_bytes, void (*see)(const struct tm_maps_file *file, void *arg),
		  void *arg)
{
	struct reading r = {.least_bytes = least_bytes, .see = see, .arg = arg};
	struct tm_maps_range range;
	struct tm_str line;
	struct lines l;
	int err = open_lines(&l, "/proc/self/smaps");

	if (err != 0)
		return err;
	while (next_line(&l, &line)) {
		if (is_range(line, &range)) {
			end_file(&r);
			begin_file(&r, line, &range);
			continue;
		}
		if (!r.fits)
			continue;
		r.file.resident_bytes += kilobytes(line, "Rss:");
		if (kilobytes(line, "Anonymous:") != 0 || kilobytes(line, "Swap:") != 0 ||
		    (tm_str_starts(line, "VmFlags:") && has_bar(line)))
			r.fits = false;
	}
	end_file(&r);
	close_lines(&l);
	return 0;
}
