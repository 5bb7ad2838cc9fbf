/* SPDX-License-Identifier: MIT */
#include "tools/ledger/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <stdio.h>

#include "tools/cmd.h"

/*
 * Data of a heap of 64 GiB of 64-byte objects; a larger file is no ledger that this command can
 * copy.
 */
#define DATA_MAX ((uint64_t)6 << 30)

static int bad(const char *path, const char *field, uint64_t value)
{
	tm_say("'%s' is no ledger: %s is %llu", path, field, (unsigned long long)value);
	return -1;
}

const void *tm_ledger_at(const struct tm_ledger *l, uint64_t offset)
{
	return l->image + offset;
}

static int check_header(const struct tm_ledger *l)
{
	const struct tm_ledger_header *h = &l->header;
	const struct {
		const char *name;
		uint64_t value, most;
	} field[] = {
		{"granules", h->granules, TM_LEDGER_GRANULES},
		{"heaps", h->heaps, TM_LEDGER_HEAPS},
		{"maps_bytes", h->maps_bytes, TM_LEDGER_MAPS_BYTES},
		{"exe_build_id_bytes", h->exe_build_id_bytes, sizeof(h->exe_build_id)},
		{"modules", h->modules, TM_LEDGER_MODULES},
		{"stacks", h->stacks, TM_LEDGER_STACKS},
		{"frames", h->frames, TM_LEDGER_FRAMES},
		{"pools", h->pools, TM_LEDGER_POOLS},
		{"decisions", h->decisions, TM_LEDGER_DECISIONS},
		{"cohort_sites", h->cohort_sites, TM_LEDGER_COHORT_SITES},
		{"gpu_rows", h->gpu_rows, TM_LEDGER_GPU_ROWS},
		{"gpu_pools", h->gpu_pools, TM_LEDGER_GPU_POOLS},
		{"lives", h->lives, TM_LEDGER_LIVES},
		{"window_ms", h->window_ms, UINT32_C(86400000)},
		{"zone_base", h->zone_base, UINT64_C(1) << 57},
	};

	for (size_t i = 0; i < TM_ARRAY_LEN(field); i++) {
		if (field[i].value > field[i].most)
			return bad(l->path, field[i].name, field[i].value);
	}
	return 0;
}

/* Copies [from, to); what can't be read, because the file was just truncated, stays zero. */
static void copy_range(struct tm_ledger *l, uint64_t from, uint64_t to)
{
	while (from < to) {
		ssize_t n = pread(l->fd, l->image + from, (size_t)(to - from), (off_t)from);

		if (n <= 0)
			return;
		from += (uint64_t)n;
	}
}

/*
 * Copies only the parts with data: reading a hole of a tmpfs file through a mapping would fill it.
 */
static int copy_data(struct tm_ledger *l)
{
	uint64_t copied = 0;
	off_t from = 0;

	for (;;) {
		from = lseek(l->fd, from, SEEK_DATA);
		off_t to = from < 0 ? -1 : lseek(l->fd, from, SEEK_HOLE);

		if (from < 0 || to < from)
			return 0;
		if ((uint64_t)to > TM_LEDGER_BYTES)
			to = (off_t)TM_LEDGER_BYTES;
		if ((uint64_t)from >= (uint64_t)to)
			return 0;
		copied += (uint64_t)(to - from);
		if (copied > DATA_MAX)
			return bad(l->path, "its data", copied);
		copy_range(l, (uint64_t)from, (uint64_t)to);
		from = to;
	}
}

/* Whether this is an output of this command, given in place of a ledger. */
static bool is_other_file(const struct tm_ledger *l)
{
	char first = *(const char *)&l->header.magic;

	if (first == '{')
		tm_say("'%s' is no ledger: if it is a report in JSON, use '--from-json %s'",
		       l->path, l->path);
	else if (first == '<')
		tm_say("'%s' is no ledger but a page, which a browser shows", l->path);
	return first == '{' || first == '<';
}

bool tm_ledger_is_readable(const char *path, uint32_t *ret_version)
{
	struct tm_ledger_header header = {.magic = 0};
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool is = fd >= 0 && read(fd, &header, sizeof(header)) == (ssize_t)sizeof(header) &&
		  header.magic == TM_LEDGER_MAGIC;

	if (fd >= 0)
		close(fd);
	*ret_version = is ? header.version : 0;
	return is && header.version == TM_LEDGER_VERSION;
}

static int open_file(struct tm_ledger *l)
{
	struct stat st;

	l->fd = open(l->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (l->fd < 0 || fstat(l->fd, &st) != 0) {
		tm_say("cannot read '%s': %s", l->path, strerror(errno));
		return -1;
	}
	if (!S_ISREG(st.st_mode)) {
		tm_say("'%s' is no ledger: it is no plain file", l->path);
		return -1;
	}
	if (pread(l->fd, &l->header, sizeof(l->header), 0) != (ssize_t)sizeof(l->header))
		return bad(l->path, "its length", (uint64_t)st.st_size);
	l->header.program[sizeof(l->header.program) - 1] = '\0';
	if (l->header.magic != TM_LEDGER_MAGIC && is_other_file(l))
		return -1;
	if (l->header.magic != TM_LEDGER_MAGIC)
		return bad(l->path, "magic", l->header.magic);
	if (l->header.version != TM_LEDGER_VERSION) {
		tm_say("'%s' is a ledger of another version (%u, this command reads %u)", l->path,
		       l->header.version, TM_LEDGER_VERSION);
		return -1;
	}
	/* The file has its full length from the start: a shorter one was truncated. */
	if ((uint64_t)st.st_size != TM_LEDGER_BYTES)
		return bad(l->path, "its length", (uint64_t)st.st_size);
	return check_header(l);
}

bool tm_ledger_whole(const struct tm_ledger *l, uint64_t offset, void *ret_record, size_t bytes,
		     size_t seq_at)
{
	uint32_t before, after;

	for (int i = 0; i < 3; i++) {
		if (pread(l->fd, ret_record, bytes, (off_t)offset) != (ssize_t)bytes ||
		    pread(l->fd, &after, sizeof(after), (off_t)(offset + seq_at)) !=
			    (ssize_t)sizeof(after))
			return false;
		memcpy(&before, (char *)ret_record + seq_at, sizeof(before));
		if ((before & 1) == 0 && before == after)
			return true;
	}
	return false;
}

static uint64_t unix_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

int tm_ledger_open(struct tm_ledger *l, const char *path)
{
	return tm_ledger_open_since(l, path, 0);
}

int tm_ledger_open_since(struct tm_ledger *l, const char *path, uint64_t since_ms)
{
	memset(l, 0, sizeof(*l));
	l->path = path;
	l->since_ms = since_ms;
	if (open_file(l) != 0)
		goto fail;
	void *p = mmap(NULL, TM_LEDGER_BYTES, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) {
		tm_say("cannot map %llu bytes for '%s': %s", (unsigned long long)TM_LEDGER_BYTES,
		       path, strerror(errno));
		goto fail;
	}
	l->image = p;
	l->read_ns = unix_now_ns();
	if (copy_data(l) != 0)
		goto fail;
	if (!tm_ledger_whole(l, TM_LEDGER_COUNTERS_AT, &l->counters, sizeof(l->counters),
			     offsetof(struct tm_ledger_counters, seq))) {
		memset(&l->counters, 0, sizeof(l->counters));
		l->torn++;
	}
	l->now_ms = tm_ledger_now_ms(l);
	if (tm_ledger_count_sites(l) == 0)
		return 0;
	tm_say("out of memory for the sites of '%s'", path);
fail:
	tm_ledger_close(l);
	return -1;
}

void tm_ledger_close(struct tm_ledger *l)
{
	free(l->sites);
	free(l->row_site);
	if (l->image != NULL)
		munmap(l->image, TM_LEDGER_BYTES);
	if (l->path != NULL && l->fd >= 0)
		close(l->fd);
	memset(l, 0, sizeof(*l));
	l->fd = -1;
}

uint64_t tm_ledger_start_time(uint32_t pid)
{
	char path[32], text[1024];
	unsigned long long start = 0;
	char state = 0;
	long threads = 0;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	FILE *f = fopen(path, "re");
	if (f == NULL)
		return 0;
	size_t n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	/* The name may contain blanks and brackets: count fields from the last bracket. */
	char *end = strrchr(text, ')');
	if (end == NULL ||
	    sscanf(end + 1,
		   " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld %*s %llu",
		   &state, &threads, &start) != 3)
		return 0;
	/* gone, though its parent hasn't asked; with threads, only the first of them has ended */
	if ((state == 'Z' || state == 'X') && threads <= 1)
		return 0;
	return start;
}

bool tm_ledger_runs(const struct tm_ledger *l)
{
	return l->header.clean_exit == 0 && l->header.pid != 0 && l->header.start_time != 0 &&
	       tm_ledger_start_time(l->header.pid) == l->header.start_time;
}

const char *tm_ledger_ended(const struct tm_ledger *l)
{
	if (l->header.clean_exit != 0)
		return "clean";
	return tm_ledger_runs(l) ? "running" : "killed";
}

uint64_t tm_ledger_unix_ns(const struct tm_ledger *l, uint64_t at_ms)
{
	const struct tm_ledger_header *h = &l->header;

	if (at_ms == 0)
		return 0;
	return h->begun_unix_ns + (at_ms - h->begun_ms) * 1000000;
}

uint64_t tm_ledger_now_ms(const struct tm_ledger *l)
{
	const struct tm_ledger_header *h = &l->header;

	if (h->ended_ms > h->begun_ms)
		return h->ended_ms;
	if (tm_ledger_runs(l) && l->read_ns > h->begun_unix_ns)
		return h->begun_ms + (l->read_ns - h->begun_unix_ns) / 1000000;
	return h->heartbeat_ms > h->begun_ms ? h->heartbeat_ms : h->begun_ms;
}

const struct tm_ledger_module *tm_ledger_module(const struct tm_ledger *l, uint64_t address,
						uint32_t epoch)
{
	const struct tm_ledger_module *m = tm_ledger_at(l, TM_LEDGER_MODULES_AT), *found = NULL;

	for (uint32_t i = 0; i < l->header.modules; i++, m++) {
		if (m->end <= m->begin || address < m->begin || address >= m->end)
			continue;
		bool fits =
			epoch >= m->load_epoch && (m->unloaded_ms == 0 || epoch <= m->unload_epoch);
		if (fits)
			return m;
		if (found == NULL || m->unloaded_ms == 0)
			found = m;
	}
	return found;
}

const struct tm_ledger_stack *tm_ledger_stack(const struct tm_ledger *l, uint64_t site,
					      uint32_t height)
{
	const struct tm_ledger_stack *s = tm_ledger_at(l, TM_LEDGER_STACKS_AT), *best = NULL;

	for (uint32_t i = 0; i < l->header.stacks; i++, s++) {
		if (s->site != site || site == 0 || s->height != height || s->frames == 0 ||
		    (uint64_t)s->frames_at + s->frames > TM_LEDGER_FRAMES)
			continue;
		if (best == NULL || s->samples > best->samples)
			best = s;
	}
	return best;
}

static bool stands_for_python(const struct tm_ledger *l, uint64_t site)
{
	return (l->header.features & TM_LEDGER_HAS_PYTHON) && (site & TM_LEDGER_PYTHON_SITE);
}

uint64_t tm_ledger_return_address(const struct tm_ledger *l, uint64_t site,
				  const struct tm_ledger_stack *s)
{
	const uint64_t *frames = tm_ledger_at(l, TM_LEDGER_FRAMES_AT);

	if (!stands_for_python(l, site))
		return site;
	return s && !(frames[s->frames_at] & TM_LEDGER_PYTHON_FRAME) ? frames[s->frames_at] : 0;
}

const struct tm_ledger_python *tm_ledger_python(const struct tm_ledger *l, uint64_t word)
{
	const struct tm_ledger_python *p;
	uint64_t at = (uint32_t)word;

	if (!(word & TM_LEDGER_PYTHON_FRAME) || at % 8 != 0 ||
	    at + sizeof(*p) > TM_LEDGER_PYTHON_BYTES)
		return NULL;
	p = tm_ledger_at(l, TM_LEDGER_PYTHON_AT + at);
	if (p->file_bytes == 0 ||
	    at + sizeof(*p) + p->file_bytes + p->name_bytes > TM_LEDGER_PYTHON_BYTES)
		return NULL;
	return p;
}

void tm_ledger_name(const struct tm_ledger *l, uint64_t address, char *buf, size_t size)
{
	const struct tm_ledger_module *m = tm_ledger_module(l, address, l->header.epoch);
	const char *name;

	if (address == 0) {
		snprintf(buf, size, "(other sites)");
	} else if (m == NULL) {
		snprintf(buf, size, "0x%llx", (unsigned long long)address);
	} else {
		name = memrchr(m->path, '/', strnlen(m->path, sizeof(m->path)));
		name = name ? name + 1 : m->path;
		snprintf(buf, size, "%.*s+0x%llx",
			 (int)strnlen(name, (size_t)(m->path + sizeof(m->path) - name)), name,
			 (unsigned long long)(address - m->base));
	}
}
