/* SPDX-License-Identifier: MIT */
/* trace_convert: see trace_convert.h. */
#include "tools/cmd/trace_convert.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/hash.h"
#include "shim/base/trace_format.h"
#include "tools/cmd.h"
#include "tools/elf_look.h"

/* Hash map, open addressing; key 0 is a free slot. Value 0 of a present key: it was removed. */
struct map {
	uint64_t *keys;
	uint32_t *values;
	size_t size, used;
};

static bool map_grow(struct map *m)
{
	struct map old = *m;

	m->size = old.size ? old.size * 2 : 1024;
	m->used = 0;
	m->keys = calloc(m->size, sizeof(*m->keys));
	m->values = calloc(m->size, sizeof(*m->values));
	if (m->keys == NULL || m->values == NULL)
		return false;
	for (size_t i = 0; i < old.size; i++) {
		size_t at;

		if (old.keys[i] == 0 || old.values[i] == 0)
			continue;
		at = tm_hash_u64(old.keys[i]) & (m->size - 1);
		while (m->keys[at] != 0)
			at = (at + 1) & (m->size - 1);
		m->keys[at] = old.keys[i];
		m->values[at] = old.values[i];
		m->used++;
	}
	free(old.keys);
	free(old.values);
	return true;
}

/* Address of the value; NULL without memory. */
static uint32_t *map_at(struct map *m, uint64_t key)
{
	size_t at;

	if (m->used * 2 >= m->size && !map_grow(m))
		return NULL;
	at = tm_hash_u64(key) & (m->size - 1);
	while (m->keys[at] != 0 && m->keys[at] != key)
		at = (at + 1) & (m->size - 1);
	if (m->keys[at] == 0) {
		m->keys[at] = key;
		m->used++;
	}
	return &m->values[at];
}

#define BUILD_ID_MAX 32u

struct mapping {
	uint64_t begin, end, base;
	char name[128];
	char build_id[2 * BUILD_ID_MAX + 1]; /* hexadecimal; empty: not known */
};

struct conversion {
	FILE *in;
	struct map live, stacks, threads;
	unsigned char *events; /* 36 bytes each */
	size_t count, room;
	uint64_t *sites; /* call site by stack id, from 1 on */
	size_t site_room;
	struct mapping *mappings;
	size_t mapping_count;
	uint32_t objects, stack_count, thread_count;
	uint64_t begun_ns, unknown;
};

static int by_time(const void *a, const void *b)
{
	const struct tm_trace_record *x = a, *y = b;

	return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

/* --- memory map ------------------------------------------------------------------------------- */

/*
 * Looks up a file's build id. A file that was replaced meanwhile has " (deleted)" after its name,
 * so it can't be opened.
 */
static void look_up_build_id(struct mapping *m, const char *path)
{
	uint8_t id[BUILD_ID_MAX];
	struct tm_elf elf;
	size_t len;

	if (tm_elf_look_open(&elf, path) != 0)
		return;
	len = tm_elf_look_build_id(&elf, id, sizeof(id));
	for (size_t i = 0; i < len; i++)
		snprintf(m->build_id + 2 * i, 3, "%02x", id[i]);
	tm_elf_look_close(&elf);
}

static void parse_mapping(struct conversion *c, const char *line)
{
	unsigned long long begin, end, offset;
	struct mapping *more, *m;
	const char *name;
	int used = 0;

	if (sscanf(line, "%llx-%llx %*s %llx %*s %*s %n", &begin, &end, &offset, &used) < 3 ||
	    used == 0 || line[used] != '/')
		return;
	more = realloc(c->mappings, (c->mapping_count + 1) * sizeof(*more));
	if (more == NULL)
		return;
	c->mappings = more;
	m = &more[c->mapping_count++];
	*m = (struct mapping){.begin = begin, .end = end, .base = begin - offset};
	name = strrchr(line + used, '/') + 1;
	snprintf(m->name, sizeof(m->name), "%s", name);
	/* The load address is that of the file's first mapping. */
	for (size_t i = 0; i + 1 < c->mapping_count; i++) {
		if (strcmp(more[i].name, m->name) == 0) {
			m->base = more[i].base;
			memcpy(m->build_id, more[i].build_id, sizeof(m->build_id));
			return;
		}
	}
	look_up_build_id(m, line + used);
}

static int read_text(struct conversion *c, uint64_t bytes)
{
	char *text = bytes < (16 << 20) ? malloc(bytes + 1) : NULL;
	char *save = NULL;

	if (text == NULL || fread(text, 1, bytes, c->in) != bytes) {
		free(text);
		return -1;
	}
	text[bytes] = '\0';
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		parse_mapping(c, line);
	free(text);
	return 0;
}

/* --- events ----------------------------------------------------------------------------------- */

static uint32_t stack_of(struct conversion *c, uint64_t site)
{
	uint32_t *id = site ? map_at(&c->stacks, site) : NULL;

	if (id == NULL)
		return 0;
	if (*id == 0) {
		if (c->stack_count + 1 >= c->site_room) {
			size_t room = c->site_room * 2 + 1024;
			uint64_t *more = realloc(c->sites, room * sizeof(*more));

			if (more == NULL)
				return 0;
			c->sites = more;
			c->site_room = room;
		}
		*id = ++c->stack_count;
		c->sites[*id] = site;
	}
	return *id;
}

static uint32_t take_away(struct conversion *c, uint64_t pointer)
{
	uint32_t *id = pointer ? map_at(&c->live, pointer) : NULL;
	uint32_t object = id ? *id : 0;

	if (object)
		*id = 0;
	return object;
}

static int put(struct conversion *c, const struct tm_trace_record *r, uint32_t object,
	       uint32_t previous)
{
	uint32_t *thread = map_at(&c->threads, (uint64_t)r->thread + 1);
	uint32_t stack = stack_of(c, r->op <= TM_TRACE_RECORD_NEW ? r->site : 0);
	uint64_t time_ns = r->time_ns - c->begun_ns;
	unsigned char *to;
	uint16_t number;

	if (c->count == c->room) {
		size_t room = c->room * 2 + 65536;
		unsigned char *more = realloc(c->events, room * 36);

		if (more == NULL)
			return -1;
		c->events = more;
		c->room = room;
	}
	if (thread == NULL)
		return -1;
	if (*thread == 0)
		*thread = ++c->thread_count;
	number = (uint16_t)(*thread - 1);
	to = c->events + c->count++ * 36;
	memcpy(to, &time_ns, 8);
	memcpy(to + 8, &r->size, 8);
	memcpy(to + 16, &object, 4);
	memcpy(to + 20, &previous, 4);
	memcpy(to + 24, &stack, 4);
	memcpy(to + 28, &r->height, 4);
	memcpy(to + 32, &number, 2);
	to[34] = r->op;
	to[35] = r->align_log2;
	return 0;
}

static int convert(struct conversion *c, const struct tm_trace_record *r)
{
	uint32_t object = 0, previous = 0;
	uint32_t *id;

	if (c->begun_ns == 0)
		c->begun_ns = r->time_ns;
	if (r->op == TM_TRACE_RECORD_MARK)
		return put(c, r, (uint32_t)r->pointer, 0);
	if (r->op == TM_TRACE_RECORD_FREE || r->op == TM_TRACE_RECORD_DELETE) {
		object = take_away(c, r->pointer);
		c->unknown += object == 0;
		return object ? put(c, r, object, 0) : 0;
	}
	if (r->op == 0 || r->op > TM_TRACE_RECORD_NEW)
		return -1;
	if (r->op == TM_TRACE_RECORD_REALLOC)
		previous = take_away(c, r->old);
	/*
	 * A block recorded at this address died unseen: its free is recorded later, or was left
	 * out.
	 */
	object = take_away(c, r->pointer);
	if (object) {
		struct tm_trace_record death = *r;

		death.op = TM_TRACE_RECORD_FREE;
		death.size = 0;
		if (put(c, &death, object, 0) != 0)
			return -1;
	}
	id = map_at(&c->live, r->pointer);
	if (id == NULL || c->objects == UINT32_MAX - 1)
		return -1;
	*id = ++c->objects;
	return put(c, r, *id, previous);
}

/* --- reading and writing ---------------------------------------------------------------------- */

/* Reads the records; returns NULL, or why there are none. */
static const char *read_records(struct conversion *c, struct tm_trace_record **ret,
				size_t *ret_count)
{
	struct tm_trace_record *all = NULL, r;
	size_t count = 0, room = 0;
	uint64_t magic;

	if (fread(&magic, sizeof(magic), 1, c->in) != 1 || magic != TM_TRACE_RECORD_MAGIC)
		return "it is not what TIERMALLOC_TRACE records";
	while (fread(&r, sizeof(r), 1, c->in) == 1) {
		if (r.op == TM_TRACE_RECORD_TEXT) {
			if (read_text(c, r.size) != 0)
				break;
			continue;
		}
		if (count == room) {
			struct tm_trace_record *more;

			room = room * 2 + 65536;
			more = realloc(all, room * sizeof(*more));
			if (more == NULL) {
				free(all);
				return "there is not enough memory";
			}
			all = more;
		}
		all[count++] = r;
	}
	/*
	 * Threads write their records one at a time, but a record may wait for the lock: sort by
	 * time.
	 */
	if (count)
		qsort(all, count, sizeof(*all), by_time);
	*ret = all;
	*ret_count = count;
	return NULL;
}

static const struct mapping *mapping_of(const struct conversion *c, uint64_t address)
{
	for (size_t i = 0; i < c->mapping_count; i++) {
		if (address > c->mappings[i].begin && address <= c->mappings[i].end)
			return &c->mappings[i];
	}
	return NULL;
}

/* Writes stacks, each one frame with the same number, and each mapping as a module. */
static void write_text(const struct conversion *c, FILE *out)
{
	for (size_t i = 0; i < c->mapping_count; i++) {
		fprintf(out, "module %zu %s\n", i, c->mappings[i].name);
		if (c->mappings[i].build_id[0])
			fprintf(out, "build-id %zu %s\n", i, c->mappings[i].build_id);
	}
	for (uint32_t i = 1; i <= c->stack_count; i++) {
		const struct mapping *m = mapping_of(c, c->sites[i]);

		if (m)
			fprintf(out, "frame %u %td 0x%llx\n", i - 1, m - c->mappings,
				(unsigned long long)(c->sites[i] - m->base));
		else
			fprintf(out, "frame %u - 0x0\n", i - 1);
	}
	for (uint32_t i = 1; i <= c->stack_count; i++)
		fprintf(out, "stack %u %u\n", i, i - 1);
}

static int write_trace(const struct conversion *c, const char *path)
{
	FILE *out = fopen(path, "we");
	uint64_t head[4] = {0, c->count, c->objects, 0};
	long end = -1, begin = 0;
	bool failed;

	if (out == NULL) {
		tm_say("'%s' cannot be written: %s", path, strerror(errno));
		return -1;
	}
	memcpy(head, "TMTRACE1", 8);
	fwrite(head, sizeof(head), 1, out);
	fwrite(c->events, 36, c->count, out);
	begin = ftell(out);
	write_text(c, out);
	end = ftell(out);
	head[3] = (uint64_t)(end - begin);
	failed = fseek(out, 0, SEEK_SET) != 0 || fwrite(head, sizeof(head), 1, out) != 1;
	failed |= ferror(out) != 0;
	failed |= fclose(out) != 0;
	if (failed)
		tm_say("'%s' cannot be written: %s", path, strerror(errno));
	return failed ? -1 : 0;
}

static void clear(struct conversion *c)
{
	free(c->live.keys);
	free(c->live.values);
	free(c->stacks.keys);
	free(c->stacks.values);
	free(c->threads.keys);
	free(c->threads.values);
	free(c->events);
	free(c->sites);
	free(c->mappings);
}

int tm_trace_convert(const char *recording, const char *trace, struct tm_trace_sums *ret)
{
	struct conversion c = {.in = fopen(recording, "re")};
	struct tm_trace_record *records = NULL;
	const char *why;
	size_t count = 0;
	int err = 0;

	why = c.in == NULL ? strerror(errno) : read_records(&c, &records, &count);
	if (why) {
		tm_say("the recording '%s' cannot be read: %s", recording, why);
		err = TM_EXIT_USAGE;
	} else {
		for (size_t i = 0; i < count && err == 0; i++)
			err = convert(&c, &records[i]);
		if (err != 0)
			tm_say("the recording '%s' is damaged or too large: record a shorter run",
			       recording);
		else
			err = write_trace(&c, trace);
		if (err != 0)
			err = TM_EXIT_TROUBLE;
	}
	*ret = (struct tm_trace_sums){c.count, c.objects, c.unknown};
	if (c.in)
		fclose(c.in);
	free(records);
	clear(&c);
	return err;
}
