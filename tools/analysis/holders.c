/* SPDX-License-Identifier: MIT */
#include "tools/analysis/holders.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "tools/analysis/ranges.h"
#include "tools/library.h"

#define LEVELS_MAX 6u
#define CHUNK_BYTES ((size_t)1 << 20)
#define ROOTS_MAX 64u
#define LATE_MAX 4096u

/* A place outside blocks that holds pointers: a variable, a stack, a mapping. */
struct root {
	char name[200];
	uint64_t count;
	bool is_static; /* in a module's static data, where no stale words are */
	bool is_ours;   /* in the library itself */
};

/* A word of static data that points to a place where no object was when the ledger was read. */
struct late {
	uint64_t at, word;
	bool is_wanted;
};

struct search {
	struct tm_document *doc;
	struct tm_ledger *ledger;
	struct tm_symbols *symbols;
	struct tm_ranges objects; /* all live objects, by the numbers of their sites */
	uint32_t wanted;          /* the site whose holders are wanted */
	uint64_t wanted_objects;
	uint64_t low, high; /* address range of its objects */
	/* by site: number of words in its blocks that point to the wanted site's */
	uint64_t *holds;
	/* number of words in the wanted site's blocks that point to other blocks of it */
	uint64_t chained;
	struct root root[ROOTS_MAX];
	size_t roots;
	struct late *late; /* LATE_MAX */
	size_t lates;
	unsigned char *chunk;
	unsigned char *seen; /* by site: already searched for */
};

static void see_object(void *ctx, const struct tm_ledger_object *o)
{
	struct search *s = ctx;

	/* Bytes after the requested ones are left from earlier blocks. */
	tm_ranges_add(&s->objects, o->address, o->address + (o->bytes ? o->bytes : 1),
		      (uint64_t)(o->site - s->ledger->sites));
}

static void add_root(struct search *s, const struct root *root)
{
	size_t i = 0;

	if (root->is_ours)
		return;
	while (i < s->roots && strcmp(s->root[i].name, root->name) != 0)
		i++;
	if (i == ROOTS_MAX)
		return;
	if (i == s->roots)
		s->root[s->roots++] = *root;
	s->root[i].count++;
}

/* Names a root: "variable g_cache of libfoo.so", or the mapping's name. */
static void name_root(struct search *s, uint64_t address, const char *mapping, struct root *root)
{
	size_t size = sizeof(root->name);
	const struct tm_ledger_module *m =
		tm_ledger_module(s->ledger, address, s->ledger->header.epoch);
	uint64_t offset = 0;

	if (m == NULL) {
		snprintf(root->name, size, "%s",
			 *mapping ? mapping : "memory that is no block of ours");
		return;
	}
	root->is_static = true;
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
	/* The library's tables refer to all blocks but keep none alive. */
	root->is_ours = strncmp(file, TM_LIBRARY_NAME, strlen(TM_LIBRARY_NAME)) == 0;
	if (variable)
		snprintf(root->name, size, "variable %.100s of %.60s", variable, file);
	else
		snprintf(root->name, size, "data of %.100s+0x%" PRIx64, file, address - m->base);
}

static bool is_in_zone(const struct search *s, uint64_t address)
{
	return address - s->ledger->header.zone_base < s->ledger->header.granules << 16;
}

static void see_word(struct search *s, uint64_t at, uint64_t word, const char *mapping)
{
	const struct tm_range *target = NULL, *holder;
	struct root root = {.count = 0};

	if (word >= s->low && word < s->high)
		target = tm_ranges_find(&s->objects, word);
	/* The zone may have grown since the ledger was copied. */
	if (target == NULL && s->lates < LATE_MAX &&
	    word - s->ledger->header.zone_base < (uint64_t)TM_LEDGER_GRANULES << 16 &&
	    !is_in_zone(s, at) && tm_ledger_module(s->ledger, at, s->ledger->header.epoch) &&
	    tm_ranges_find(&s->objects, word) == NULL)
		s->late[s->lates++] = (struct late){at, word, false};
	if (target == NULL || target->number != s->wanted)
		return;
	holder = tm_ranges_find(&s->objects, at);
	if (holder) {
		if (holder->number != s->wanted)
			s->holds[holder->number]++;
		else if (holder != target)
			s->chained++;
		return;
	}
	/* Free slots and pages of the heap still have their old contents. */
	if (is_in_zone(s, at))
		return;
	name_root(s, at, mapping, &root);
	add_root(s, &root);
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

/* Reads all private writable mappings, which hold the pointers; devices and ledgers are skipped. */
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
	s->wanted_objects = 0;
	s->low = UINT64_MAX;
	s->high = 0;
	for (size_t i = 0; i < s->objects.count; i++) {
		const struct tm_range *o = &s->objects.at[i];

		if (o->number != site)
			continue;
		s->wanted_objects++;
		if (o->low < s->low)
			s->low = o->low;
		if (o->high > s->high)
			s->high = o->high;
	}
	s->roots = 0;
	s->lates = 0;
	s->chained = 0;
	memset(s->holds, 0, s->ledger->site_count * sizeof(*s->holds));
	s->seen[site] = 1;
}

static void add_line(struct search *s, struct tm_doc_texts *lines, const char *name, uint64_t count)
{
	tm_document_push_text(s->doc, lines,
			      tm_document_format(s->doc, "%s (%" PRIu64 " pointer%s)", name, count,
						 count == 1 ? "" : "s"));
}

static void add_statics(struct search *s, struct tm_doc_texts *lines)
{
	for (size_t i = 0; i < s->roots; i++) {
		if (s->root[i].is_static)
			add_line(s, lines, s->root[i].name, s->root[i].count);
	}
}

static void add_others(struct search *s, struct tm_doc_texts *lines)
{
	for (size_t i = 0; i < s->roots; i++) {
		if (!s->root[i].is_static)
			add_line(s, lines, s->root[i].name, s->root[i].count);
	}
}

/*
 * The site whose blocks hold most pointers and that was not searched for yet; UINT32_MAX: none.
 * Blocks of a busy site may have stale contents: a site that allocated less is preferred if it has
 * at least half as many.
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

static int by_word(const void *a, const void *b)
{
	const struct late *x = a, *y = b;

	return x->word < y->word ? -1 : x->word > y->word;
}

static void see_late(void *ctx, const struct tm_ledger_object *o)
{
	struct search *s = ctx;
	const struct tm_ledger_site *site = &s->ledger->sites[s->wanted];
	size_t low = 0, high = s->lates;

	if (o->site->address != site->address || o->site->height != site->height)
		return;
	while (low < high) {
		size_t middle = (low + high) / 2;

		if (s->late[middle].word < o->address)
			low = middle + 1;
		else
			high = middle;
	}
	while (low < s->lates && s->late[low].word - o->address < o->bytes)
		s->late[low++].is_wanted = true;
}

/*
 * Handles changes between the copy of the ledger and the reading of memory: the head of a growing
 * list points to an object that the copy lacks. A second copy has it.
 */
static void add_late(struct search *s)
{
	struct tm_ledger fresh;

	if (s->lates == 0 || tm_ledger_open(&fresh, s->ledger->path) != 0)
		return;
	qsort(s->late, s->lates, sizeof(s->late[0]), by_word);
	tm_ledger_walk(&fresh, NULL, see_late, s);
	tm_ledger_close(&fresh);
	for (size_t i = 0; i < s->lates; i++) {
		struct root root = {.count = 0};

		if (!s->late[i].is_wanted)
			continue;
		name_root(s, s->late[i].at, "", &root);
		add_root(s, &root);
	}
}

static void climb(struct search *s, struct tm_doc_texts *lines)
{
	for (unsigned level = 0; level < LEVELS_MAX; level++) {
		uint64_t roots = 0;

		if (s->low >= s->high || !read_all(s))
			return;
		if (level == 0)
			add_late(s);
		for (size_t i = 0; i < s->roots; i++)
			roots += s->root[i].count;
		uint32_t next = next_site(s);
		/* A few such words may be left from earlier blocks. */
		if (level == 0 && s->chained > s->wanted_objects / 2)
			add_line(s, lines, "each other, as a list or a tree does", s->chained);
		/*
		 * A stack's word may be stale, so it is no holder if blocks hold more; a variable
		 * is one.
		 */
		add_statics(s, lines);
		if (next == UINT32_MAX || s->holds[next] < roots) {
			add_others(s, lines);
			if (roots == 0)
				tm_document_push_text(s->doc, lines,
						      "nothing that could be read points there");
			return;
		}
		const struct tm_doc_site *site = &s->doc->sites.at[next];
		char frame[300], name[400];
		tm_analysis_name_frame(s->doc, tm_analysis_frame(s->doc, site), frame,
				       sizeof(frame));
		snprintf(name, sizeof(name), "blocks of %s  %s", site->id, frame);
		add_line(s, lines, name, s->holds[next]);
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
	s.late = malloc(LATE_MAX * sizeof(*s.late));
	s.symbols = tm_symbols_new(NULL);
	if (s.holds && s.seen && s.chunk && s.late) {
		tm_ledger_walk(ledger, NULL, see_object, &s);
		tm_ranges_sort(&s.objects);
		set_wanted(&s, (uint32_t)site);
		climb(&s, ret_lines);
	}
	tm_symbols_free(s.symbols);
	tm_ranges_clear(&s.objects);
	free(s.holds);
	free(s.seen);
	free(s.chunk);
	free(s.late);
}
