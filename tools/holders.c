/* SPDX-License-Identifier: MIT */
#include "tools/holders.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define LEVELS_MAX 6u
#define CHUNK_BYTES ((size_t)1 << 20)
#define ROOTS_MAX 64u

struct object {
	uint64_t address, bytes;
	uint32_t site;
};

/* A variable, a stack, a mapping: what is no block. */
struct root {
	char name[200];
	uint64_t count;
};

struct search {
	struct tm_document *doc;
	struct tm_ledger *ledger;
	struct tm_symbols *symbols;
	struct object *object; /* all that live, by address */
	size_t count, room;
	uint32_t wanted;    /* site */
	uint64_t low, high; /* of its objects */
	uint64_t *holds;    /* by site: words in its blocks that point to the wanted one's */
	struct root root[ROOTS_MAX];
	size_t roots;
	unsigned char *chunk;
	unsigned char *seen; /* by site */
};

static void see_object(void *ctx, const struct tm_ledger_object *o)
{
	struct search *s = ctx;

	if (s->count == s->room) {
		size_t room = s->room ? 2 * s->room : 65536;
		struct object *wider = realloc(s->object, room * sizeof(*wider));

		if (wider == NULL)
			return;
		s->object = wider;
		s->room = room;
	}
	s->object[s->count++] =
		(struct object){o->address, o->slot_bytes, (uint32_t)(o->site - s->ledger->sites)};
}

static const struct object *object_at(const struct search *s, uint64_t address)
{
	size_t low = 0, high = s->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (s->object[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || address - s->object[low - 1].address >= s->object[low - 1].bytes)
		return NULL;
	return &s->object[low - 1];
}

static void add_root(struct search *s, const char *name)
{
	size_t i = 0;

	while (i < s->roots && strcmp(s->root[i].name, name) != 0)
		i++;
	if (i == ROOTS_MAX)
		return;
	if (i == s->roots) {
		snprintf(s->root[i].name, sizeof(s->root[i].name), "%s", name);
		s->root[i].count = 0;
		s->roots++;
	}
	s->root[i].count++;
}

/* "variable g_cache+0x20 of libfoo.so", or what the mapping is called. */
static void name_root(struct search *s, uint64_t address, const char *mapping, char *buf,
		      size_t size)
{
	const struct tm_ledger_module *m =
		tm_ledger_module(s->ledger, address, s->ledger->header.epoch);
	uint64_t offset = 0;

	if (m == NULL) {
		snprintf(buf, size, "%s", *mapping ? mapping : "memory that is no block of ours");
		return;
	}
	char path[sizeof(m->path) + 1];
	snprintf(path, sizeof(path), "%.*s", (int)strnlen(m->path, sizeof(m->path)), m->path);
	const struct tm_symbols_module want = {
		path, m->build_id,
		m->build_id_bytes <= sizeof(m->build_id) ? m->build_id_bytes : 0};
	const char *variable =
		s->symbols ? tm_symbols_variable(s->symbols, &want, address - m->base, &offset)
			   : NULL;
	const char *file = strrchr(path, '/');
	file = file ? file + 1 : path;
	if (variable)
		snprintf(buf, size, "variable %.100s of %.60s", variable, file);
	else
		snprintf(buf, size, "data of %.100s+0x%" PRIx64, file, address - m->base);
}

static void see_word(struct search *s, uint64_t at, uint64_t word, const char *mapping)
{
	const struct object *target, *holder;
	char name[200];

	if (word < s->low || word >= s->high)
		return;
	target = object_at(s, word);
	if (target == NULL || target->site != s->wanted)
		return;
	holder = object_at(s, at);
	if (holder) {
		if (holder->site != s->wanted)
			s->holds[holder->site]++;
		return;
	}
	/* Free slots and pages of ours still have what was in them. */
	if (at - s->ledger->header.zone_base < s->ledger->header.granules << 16)
		return;
	name_root(s, at, mapping, name, sizeof(name));
	add_root(s, name);
}

static void read_range(struct search *s, uint64_t from, uint64_t to, const char *mapping)
{
	while (from < to) {
		size_t want = to - from < CHUNK_BYTES ? (size_t)(to - from) : CHUNK_BYTES;
		struct iovec here = {s->chunk, want};
		struct iovec there = {(void *)(uintptr_t)from, want};
		ssize_t got =
			process_vm_readv((pid_t)s->ledger->header.pid, &here, 1, &there, 1, 0);

		if (got <= 0) {
			from += 4096;
			continue;
		}
		for (size_t i = 0; i + 8 <= (size_t)got; i += 8) {
			uint64_t word;

			memcpy(&word, s->chunk + i, 8);
			see_word(s, from + i, word, mapping);
		}
		from += (uint64_t)got;
	}
}

/* Private and writable: where pointers are. Devices and ledgers are left alone. */
static bool read_all(struct search *s)
{
	char path[40], line[1024];
	bool some = false;

	snprintf(path, sizeof(path), "/proc/%u/maps", s->ledger->header.pid);
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		uint64_t from, to;
		char perms[8];
		int name_at = 0;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*s %*s %*s %n", &from, &to, perms,
			   &name_at) < 3 ||
		    strncmp(perms, "rw", 2) != 0 || perms[3] != 'p')
			continue;
		line[strcspn(line, "\n")] = '\0';
		const char *name = name_at ? line + name_at : "";
		read_range(s, from, to,
			   strncmp(name, "[stack", 6) == 0 ? "the main thread's stack" : "");
		some = true;
	}
	if (f)
		fclose(f);
	return some;
}

static void set_wanted(struct search *s, uint32_t site)
{
	s->wanted = site;
	s->low = UINT64_MAX;
	s->high = 0;
	for (size_t i = 0; i < s->count; i++) {
		const struct object *o = &s->object[i];

		if (o->site != site)
			continue;
		if (o->address < s->low)
			s->low = o->address;
		if (o->address + o->bytes > s->high)
			s->high = o->address + o->bytes;
	}
	s->roots = 0;
	memset(s->holds, 0, s->ledger->site_count * sizeof(*s->holds));
	s->seen[site] = 1;
}

static void add_lines(struct search *s, struct tm_doc_texts *lines)
{
	for (size_t i = 0; i < s->roots; i++)
		tm_document_push_text(s->doc, lines,
				      tm_document_format(s->doc, "%s (%" PRIu64 " pointers)",
							 s->root[i].name, s->root[i].count));
}

/*
 * The site whose blocks hold most pointers and was not asked for yet; UINT32_MAX: none. Of a busy
 * site's blocks some have old contents: a site that allocated less goes first where that is half.
 */
static uint32_t next_site(const struct search *s)
{
	uint32_t best = UINT32_MAX;
	uint64_t most = 0;

	for (uint32_t i = 0; i < s->ledger->site_count; i++) {
		if (s->holds[i] == 0 || s->seen[i])
			continue;
		bool rarer = best != UINT32_MAX &&
			     s->ledger->sites[i].objects < s->ledger->sites[best].objects;
		if (best == UINT32_MAX || s->holds[i] > (rarer ? most / 2 : 2 * most) ||
		    (rarer && s->holds[i] == most)) {
			most = s->holds[i];
			best = i;
		}
	}
	return best;
}

static void climb(struct search *s, struct tm_doc_texts *lines)
{
	for (unsigned level = 0; level < LEVELS_MAX; level++) {
		uint64_t roots = 0;

		if (s->low >= s->high || !read_all(s))
			return;
		for (size_t i = 0; i < s->roots; i++)
			roots += s->root[i].count;
		uint32_t next = next_site(s);
		/* A stale word of a stack is no holder while blocks hold more. */
		if (next == UINT32_MAX || s->holds[next] < roots) {
			add_lines(s, lines);
			if (roots == 0)
				tm_document_push_text(s->doc, lines,
						      "nothing that could be read points there");
			return;
		}
		const struct tm_doc_site *site = &s->doc->sites.at[next];
		char name[300];
		tm_analysis_name_frame(s->doc, tm_analysis_frame(s->doc, site), name, sizeof(name));
		tm_document_push_text(s->doc, lines,
				      tm_document_format(s->doc,
							 "blocks of %s  %s (%" PRIu64 " pointers)",
							 site->id, name, s->holds[next]));
		set_wanted(s, next);
	}
}

void tm_holders_find(struct tm_document *doc, struct tm_ledger *ledger, size_t site,
		     struct tm_doc_texts *ret_lines)
{
	struct search s = {.doc = doc, .ledger = ledger};
	char byte;
	struct iovec here = {&byte, 1};
	struct iovec there = {(void *)(uintptr_t)ledger->header.zone_base, 1};

	if (!tm_ledger_runs(ledger)) {
		tm_document_push_text(doc, ret_lines, "not known: the process has ended");
		return;
	}
	if (process_vm_readv((pid_t)ledger->header.pid, &here, 1, &there, 1, 0) != 1 &&
	    (errno == EPERM || errno == ENOSYS)) {
		tm_document_push_text(doc, ret_lines, "not known: its memory may not be read");
		return;
	}
	s.holds = calloc(ledger->site_count + 1, sizeof(*s.holds));
	s.seen = calloc(ledger->site_count + 1, 1);
	s.chunk = malloc(CHUNK_BYTES);
	s.symbols = tm_symbols_new(NULL);
	if (s.holds && s.seen && s.chunk) {
		tm_ledger_walk(ledger, NULL, see_object, &s);
		set_wanted(&s, (uint32_t)site);
		climb(&s, ret_lines);
	}
	tm_symbols_free(s.symbols);
	free(s.object);
	free(s.holds);
	free(s.seen);
	free(s.chunk);
}
