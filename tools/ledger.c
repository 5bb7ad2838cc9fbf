/* SPDX-License-Identifier: MIT */
#include "tools/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cmd.h"

/* Sites by key, open addressing; grows. */
struct table {
	struct tm_ledger_site *slot;
	size_t size; /* a power of two */
	size_t used;
};

static size_t hash(uint64_t address, uint32_t height)
{
	return (size_t)((address * UINT64_C(0x9e3779b97f4a7c15) + height) *
				UINT64_C(0xff51afd7ed558ccd) >>
			17);
}

static int grow(struct table *t)
{
	struct table wider = {.size = t->size ? t->size * 2 : 4096, .used = t->used};

	wider.slot = calloc(wider.size, sizeof(*wider.slot));
	if (wider.slot == NULL)
		return -1;
	for (size_t i = 0; i < t->size; i++) {
		const struct tm_ledger_site *s = &t->slot[i];
		if (s->objects == 0 && s->live_objects == 0)
			continue;
		size_t at = hash(s->address, s->height) & (wider.size - 1);
		while (wider.slot[at].objects != 0 || wider.slot[at].live_objects != 0)
			at = (at + 1) & (wider.size - 1);
		wider.slot[at] = *s;
	}
	free(t->slot);
	*t = wider;
	return 0;
}

/* The site's entry; one that is new must get objects or live_objects before the next call. */
static struct tm_ledger_site *site_of(struct table *t, uint64_t address, uint32_t height)
{
	if (t->used * 2 >= t->size && grow(t) != 0)
		return NULL;
	size_t at = hash(address, height) & (t->size - 1);
	for (;; at = (at + 1) & (t->size - 1)) {
		struct tm_ledger_site *s = &t->slot[at];

		if (s->objects == 0 && s->live_objects == 0) {
			s->address = address;
			s->height = height;
			t->used++;
			return s;
		}
		if (s->address == address && s->height == height)
			return s;
	}
}

/* The row that an id speaks of; row 0 and ids that make no sense are one nameless site. */
static const struct tm_ledger_row *row_of(const struct tm_ledger *l, uint64_t heap, unsigned row)
{
	static const struct tm_ledger_row none;

	if (row == 0 || heap >= l->header.heaps)
		return &none;
	return (const struct tm_ledger_row *)(const void *)(l->map + TM_LEDGER_ROWS_AT +
							    heap * TM_LEDGER_ROWS_STRIDE) +
	       row;
}

static int add_live(const struct tm_ledger *l, struct table *t, uint64_t heap, unsigned id,
		    uint64_t bytes, uint64_t slot_bytes)
{
	const struct tm_ledger_row *row = row_of(l, heap, id >> 4);
	struct tm_ledger_site *s = site_of(t, row->site, row->height);

	if (s == NULL)
		return -1;
	s->live_objects++;
	s->live_bytes += bytes;
	s->slot_bytes += slot_bytes;
	return 0;
}

static int add_span(struct tm_ledger *l, struct table *t, const struct tm_ledger_granule *g)
{
	bool small = g->kind == TM_LEDGER_SMALL;
	uint64_t entry_bytes = small ? 3 : 8;

	if (g->first > g->slots || g->slot_bytes == 0 || g->slot_bytes > 65536 ||
	    (uint64_t)g->slots * g->slot_bytes > (16u << 20) ||
	    g->at > TM_LEDGER_SIDES_BYTES - g->slots * entry_bytes) {
		l->torn++;
		return 0;
	}
	const unsigned char *side = l->map + TM_LEDGER_SIDES_AT + g->at;
	for (uint32_t i = g->first; i < g->slots; i++) {
		const unsigned char *e = side + i * entry_bytes;
		unsigned id = (unsigned)(e[0] | e[1] << 8);
		uint64_t bytes;

		if (id == TM_LEDGER_ID_FREE)
			continue;
		if (small) {
			bytes = g->slot_bytes - ((16 - (id & 15)) & 15);
		} else {
			memcpy(&bytes, e, sizeof(bytes));
			bytes >>= 24;
		}
		if (add_live(l, t, g->heap, id, bytes, g->slot_bytes) != 0)
			return -1;
	}
	return 0;
}

static int add_granules(struct tm_ledger *l, struct table *t)
{
	const struct tm_ledger_granule *g = (const void *)(l->map + TM_LEDGER_GRANULES_AT);

	for (uint64_t i = 0; i < l->header.granules; i++, g++) {
		int rc = 0;

		switch (g->kind) {
		case TM_LEDGER_NOTHING: continue;
		case TM_LEDGER_SMALL:
		case TM_LEDGER_MEDIUM: rc = add_span(l, t, g); break;
		case TM_LEDGER_BLOCK:
			rc = add_live(l, t, g->heap, g->id, g->at, (uint64_t)g->slot_bytes << 12);
			break;
		default: l->torn++;
		}
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int add_rows(const struct tm_ledger *l, struct table *t)
{
	for (uint64_t heap = 0; heap < l->header.heaps; heap++) {
		for (unsigned n = 0; n < TM_LEDGER_ROWS; n++) {
			const struct tm_ledger_row *row =
				(const struct tm_ledger_row
					 *)(const void *)(l->map + TM_LEDGER_ROWS_AT +
							  heap * TM_LEDGER_ROWS_STRIDE) +
				n;
			if (n != 0 && row->key == 0)
				break; /* rows are given out in order */
			if (row->objects == 0)
				continue;
			struct tm_ledger_site *s = site_of(t, row->site, row->height);
			if (s == NULL)
				return -1;
			s->objects += row->objects;
			s->bytes += row->bytes;
		}
	}
	return 0;
}

static int by_live(const void *a, const void *b)
{
	const struct tm_ledger_site *x = a, *y = b;

	if (x->live_bytes != y->live_bytes)
		return x->live_bytes < y->live_bytes ? 1 : -1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->height < y->height ? -1 : x->height > y->height;
}

static void collect(struct tm_ledger *l, const struct table *t)
{
	l->sites = t->slot; /* compacted in place */
	for (size_t i = 0; i < t->size; i++) {
		const struct tm_ledger_site *s = &t->slot[i];

		if (s->objects == 0 && s->live_objects == 0)
			continue;
		l->total.live_objects += s->live_objects;
		l->total.live_bytes += s->live_bytes;
		l->total.slot_bytes += s->slot_bytes;
		l->total.objects += s->objects;
		l->total.bytes += s->bytes;
		l->sites[l->site_count++] = *s;
	}
	qsort(l->sites, l->site_count, sizeof(*l->sites), by_live);
}

static int bad(const char *path, const char *field, uint64_t value)
{
	tm_say("'%s' is no ledger: %s is %llu", path, field, (unsigned long long)value);
	return -1;
}

static int check_header(const struct tm_ledger *l)
{
	const struct tm_ledger_header *h = &l->header;

	if (h->magic != TM_LEDGER_MAGIC)
		return bad(l->path, "magic", h->magic);
	if (h->version != TM_LEDGER_VERSION)
		return bad(l->path, "version", h->version);
	if (h->granules > TM_LEDGER_GRANULES)
		return bad(l->path, "granules", h->granules);
	if (h->heaps > TM_LEDGER_HEAPS)
		return bad(l->path, "heaps", h->heaps);
	if (h->maps_bytes >= TM_LEDGER_MAPS_BYTES)
		return bad(l->path, "maps_bytes", h->maps_bytes);
	return 0;
}

static int map_file(struct tm_ledger *l)
{
	struct stat st;
	int fd = open(l->path, O_RDONLY | O_CLOEXEC);
	void *p = MAP_FAILED;

	if (fd < 0 || fstat(fd, &st) != 0) {
		tm_say("cannot read '%s': %s", l->path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	/* Its full length is that of the format: what is shorter was cut, and would fault when read. */
	if (S_ISREG(st.st_mode) && (uint64_t)st.st_size == TM_LEDGER_BYTES)
		p = mmap(NULL, TM_LEDGER_BYTES, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
	else
		errno = 0;
	close(fd);
	if (p != MAP_FAILED) {
		l->map = p;
		l->map_bytes = TM_LEDGER_BYTES;
		return 0;
	}
	if (errno == 0)
		return bad(l->path, "its length", (uint64_t)st.st_size);
	tm_say("cannot map '%s': %s", l->path, strerror(errno));
	return -1;
}

int tm_ledger_open(struct tm_ledger *l, const char *path)
{
	struct table t = {0};

	memset(l, 0, sizeof(*l));
	l->path = path;
	if (map_file(l) != 0)
		return -1;
	memcpy(&l->header, l->map, sizeof(l->header));
	l->header.program[sizeof(l->header.program) - 1] = '\0';
	if (check_header(l) != 0)
		goto fail;
	if (add_rows(l, &t) != 0 || add_granules(l, &t) != 0) {
		tm_say("no memory for the sites of '%s'", path);
		free(t.slot);
		goto fail;
	}
	collect(l, &t);
	return 0;
fail:
	tm_ledger_close(l);
	return -1;
}

void tm_ledger_close(struct tm_ledger *l)
{
	free(l->sites);
	if (l->map != NULL)
		munmap((void *)(uintptr_t)l->map, l->map_bytes);
	memset(l, 0, sizeof(*l));
}

/* One line of the list: "start-end perms offset dev inode path". */
static bool line_holds(const char *line, const char *end, uint64_t address, char *buf, size_t size)
{
	unsigned long long from, to, offset;
	int path_at = 0;
	char text[512];
	size_t len = (size_t)(end - line);

	if (len >= sizeof(text))
		return false;
	memcpy(text, line, len);
	text[len] = '\0';
	if (sscanf(text, "%llx-%llx %*s %llx %*s %*s %n", &from, &to, &offset, &path_at) < 3 ||
	    address < from || address >= to || path_at == 0 || text[path_at] != '/')
		return false;
	const char *name = strrchr(text + path_at, '/') + 1;
	snprintf(buf, size, "%s+0x%llx", name, (unsigned long long)(address - from + offset));
	return true;
}

void tm_ledger_name(const struct tm_ledger *l, uint64_t address, char *buf, size_t size)
{
	const char *text = (const char *)l->map + TM_LEDGER_MAPS_AT;
	const char *end = text + l->header.maps_bytes;

	if (address == 0) {
		snprintf(buf, size, "(other sites)");
		return;
	}
	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));

		if (stop == NULL)
			stop = end;
		if (line_holds(text, stop, address, buf, size))
			return;
		text = stop + 1;
	}
	snprintf(buf, size, "0x%llx", (unsigned long long)address);
}

const char *tm_ledger_ended(const struct tm_ledger *l)
{
	if (l->header.clean_exit != 0)
		return "clean";
	return kill((pid_t)l->header.pid, 0) == 0 || errno == EPERM ? "running" : "killed";
}
