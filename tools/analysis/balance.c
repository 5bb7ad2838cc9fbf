/* SPDX-License-Identifier: MIT */
/*
 * The balance sheet: what the resident memory of a process consists of. For a running process every
 * mapping of /proc/PID/smaps is named, and the page map shows which of the heap's pages are
 * resident. For an ended process it uses the last sheet that the process wrote (struct
 * tm_ledger_sheet), or else totals. See analysis.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/analysis/analysis.h"
#include "tools/ledger/mappings.h"

#define ZONE_BYTES (TM_LEDGER_GRANULES << 16)
#define GUARD_MAX ((uint64_t)1 << 20)
#define NAMES_MAX 256u
#define OWN_MAX 128u
/*
 * Upper 32 bits of the addresses where Go's runtime requests its first arenas, and where the kernel
 * places nothing by itself.
 */
#define GO_ARENAS 0xc0u
/* A balance older than this is marked as such. */
#define LATE_MS 1500u

enum part { PART_ZONE, PART_METADATA, PART_OTHER, PART_FILE, PART_PINNED, PARTS };
static const char *const part_key[PARTS] = {NULL, "metadata", "other_anon", "file", "pinned"};

struct named {
	char name[80];
	enum part part;
	uint64_t rss, mapped, count;
};

struct sheet {
	struct tm_analysis *a;
	struct named name[NAMES_MAX];
	size_t names;
	uint64_t part[PARTS];
	uint64_t huge;         /* of the zone */
	uint64_t in_extents;   /* resident bytes of the zone in extents with something live */
	uint64_t zone_seen;    /* resident bytes of the zone according to the page map */
	uint64_t previous_end; /* end of the previous mapping */
	uint64_t own_begin;    /* everything from here to the zone is the library's; 0: not known */
	struct tm_mapping_own own[OWN_MAX]; /* further parts of the library, from the last sheet */
	size_t owns;
	bool has_python, has_node, has_java;
	bool is_closed; /* its memory may not be read */
	pid_t pid;      /* process id of a running process; 0: it has ended */
	bool guard_before;
	int pagemap;
	size_t next_extent;
};

/* --- names ------------------------------------------------------------------------------------ */

/* Adds resident and mapped bytes to a named line. */
static void add_bytes(struct sheet *s, const char *name, enum part part, uint64_t rss,
		      uint64_t mapped)
{
	size_t i = 0;

	while (i < s->names && (s->name[i].part != part || strcmp(s->name[i].name, name) != 0))
		i++;
	if (i == s->names) {
		if (s->names == NAMES_MAX)
			i = NAMES_MAX - 1;
		else
			s->names++;
		snprintf(s->name[i].name, sizeof(s->name[i].name), "%s", name);
		s->name[i].part = part;
	}
	s->name[i].rss += rss;
	s->name[i].mapped += mapped;
	s->name[i].count++;
	s->part[part] += rss;
}

static void add_named(struct sheet *s, const char *name, enum part part, const struct tm_mapping *v)
{
	add_bytes(s, name, part, v->rss, v->end - v->begin);
}

static bool ends_with(const char *text, const char *end)
{
	size_t a = strlen(text), b = strlen(end);

	return a >= b && strcmp(text + a - b, end) == 0;
}

static bool is_program_file(const struct sheet *s, const char *path)
{
	const struct tm_document *doc = s->a->doc;

	for (size_t i = 0; i < doc->modules.count; i++) {
		if (doc->modules.at[i].path && strcmp(doc->modules.at[i].path, path) == 0)
			return true;
	}
	return strstr(path, ".so") != NULL;
}

static void name_file(struct sheet *s, const struct tm_mapping *v)
{
	const char *file = strrchr(v->path, '/');

	bool shared = v->perms[3] == 's';

	if (ends_with(v->path, ".tm") || ends_with(v->path, ".tm (deleted)"))
		add_named(s, "ledger", PART_METADATA, v);
	else if (strncmp(v->path, "/dev/nvidia", 11) == 0 || v->io)
		add_named(s, "device memory", PART_PINNED, v);
	else if (shared && strncmp(v->path, "/dev/shm/torch_", 15) == 0)
		add_named(s, "shared memory of PyTorch", PART_OTHER, v);
	else if (shared && strncmp(v->path, "/dev/shm/nccl-", 14) == 0)
		add_named(s, "shared memory of NCCL", PART_OTHER, v);
	else if (strncmp(v->path, "/dev/shm/", 9) == 0 || strncmp(v->path, "/memfd:", 7) == 0 ||
		 strncmp(v->path, "/SYSV", 5) == 0 || strncmp(v->path, "/dev/zero", 9) == 0)
		add_named(s, "shared memory", PART_OTHER, v);
	else if (is_program_file(s, v->path))
		add_named(s, "program and libraries", PART_FILE, v);
	else
		add_named(s, file ? file + 1 : v->path, PART_FILE, v);
}

/* Bytes of a mapping that belong to the library. */
static uint64_t own_part(const struct sheet *s, const struct tm_mapping *v, uint64_t *ret_rss)
{
	uint64_t sum = 0, rss = 0;

	if (s->own_begin && v->begin >= s->own_begin && v->end <= s->a->ledger->header.zone_base) {
		*ret_rss = v->rss;
		return v->end - v->begin;
	}
	for (size_t i = 0; i < s->owns; i++) {
		uint64_t begin = s->own[i].begin > v->begin ? s->own[i].begin : v->begin;
		uint64_t end = s->own[i].end < v->end ? s->own[i].end : v->end;

		if (begin >= end)
			continue;
		sum += end - begin;
		rss += s->pagemap >= 0 ? tm_mappings_resident(s->pagemap, begin, end)
				       : s->own[i].rss;
	}
	*ret_rss = rss < v->rss ? rss : v->rss;
	return sum;
}

/* Best guess at the purpose of a private, anonymous, writable mapping. */
static const char *purpose(const struct sheet *s, const struct tm_mapping *v)
{
	if (v->begin >> 32 == GO_ARENAS)
		return "Go heap";
	/* In such a program only V8 maps with MAP_NORESERVE. */
	if (s->has_node && v->no_reserve)
		return "V8 heap";
	if (s->is_closed)
		return "anonymous mappings (pymalloc arenas and others)";
	if (s->has_java)
		return "anonymous mappings (Java heap and others)";
	return "anonymous mappings of the program";
}

/*
 * Splits a mapping into lines: the kernel merges adjacent mappings, so parts of it may belong to
 * the library or to an interpreter.
 */
static void name_parts(struct sheet *s, const struct tm_mapping *v)
{
	uint64_t rss = v->rss, mapped = v->end - v->begin;
	uint64_t own_rss = 0, own = own_part(s, v, &own_rss);

	if (own) {
		add_bytes(s, "tables of the allocator", PART_METADATA, own_rss, own);
		rss -= own_rss;
		mapped -= own;
	}
	if (v->pools) {
		uint64_t of_pools = v->pools_rss < rss ? v->pools_rss : rss;

		add_bytes(s, "pymalloc arenas", PART_OTHER, of_pools, v->pools);
		rss -= of_pools;
		mapped -= v->pools < mapped ? v->pools : mapped;
	}
	if (mapped)
		add_bytes(s, purpose(s, v), PART_OTHER, rss, mapped);
}

static void name_anonymous(struct sheet *s, const struct tm_mapping *v)
{
	if (v->path[0] == '[' && strncmp(v->path, "[anon:", 6) == 0) {
		add_named(s, v->path, PART_OTHER, v);
	} else if (strcmp(v->path, "[heap]") == 0) {
		add_named(s, "brk heap of libc", PART_OTHER, v);
	} else if (strncmp(v->path, "[stack", 6) == 0) {
		add_named(s, "main stack", PART_OTHER, v);
	} else if (v->path[0] == '[') {
		add_named(s, "kernel pages (vdso)", PART_FILE, v);
	} else if (s->guard_before && v->begin == s->previous_end &&
		   strncmp(v->perms, "rw-p", 4) == 0) {
		add_named(s, "thread stacks", PART_OTHER, v);
	} else if (strncmp(v->perms, "---p", 4) == 0) {
		add_named(s, "reserved addresses", PART_OTHER, v);
	} else if (v->no_reserve && s->own_begin == 0) {
		/*
		 * For ledgers without this information: the library maps its own tables with
		 * MAP_NORESERVE.
		 */
		add_named(s, "tables of the allocator", PART_METADATA, v);
	} else if (strchr(v->perms, 'x')) {
		add_named(s, "generated code", PART_OTHER, v);
	} else if (v->perms[3] == 's') {
		add_named(s, "shared memory", PART_OTHER, v);
	} else {
		name_parts(s, v);
	}
}

/* --- pages of ours ---------------------------------------------------------------------------- */

/* Bytes of [from, to) that belong to extents. Extents are sorted and calls ascend. */
static uint64_t in_extents(struct sheet *s, uint64_t from, uint64_t to)
{
	const struct tm_analysis *a = s->a;
	uint64_t sum = 0;

	while (s->next_extent < a->extent_count) {
		const struct tm_analysis_extent *x = &a->extents[s->next_extent];
		uint64_t begin = x->address > from ? x->address : from;
		uint64_t end = x->address + x->bytes < to ? x->address + x->bytes : to;

		if (begin < end)
			sum += end - begin;
		if (x->address + x->bytes >= to)
			break;
		s->next_extent++;
	}
	return sum;
}

static void count_pages(struct sheet *s, const struct tm_mapping *v)
{
	uint64_t entry[512];
	uint64_t page = v->begin >> 12, end = v->end >> 12;

	while (page < end) {
		size_t want = end - page < 512 ? (size_t)(end - page) : 512;
		ssize_t got = pread(s->pagemap, entry, want * 8, (off_t)(page * 8));

		if (got < 8)
			return;
		for (size_t i = 0; i < (size_t)got / 8; i++) {
			if ((entry[i] >> 63) == 0)
				continue;
			s->zone_seen += 4096;
			s->in_extents += in_extents(s, (page + i) << 12, (page + i + 1) << 12);
		}
		page += (uint64_t)got / 8;
	}
}

/* --- smaps ------------------------------------------------------------------------------------ */

static bool is_private(const struct tm_mapping *v)
{
	return v->path[0] == '\0' && strncmp(v->perms, "rw-p", 4) == 0;
}

static void see_mapping(struct tm_mapping *v, void *arg)
{
	struct sheet *s = arg;
	uint64_t base = s->a->ledger->header.zone_base;

	if (v->path[0] == '\0' && v->begin >= base && v->end <= base + ZONE_BYTES) {
		s->part[PART_ZONE] += v->rss;
		s->huge += v->huge;
		if (s->pagemap >= 0 && v->rss)
			count_pages(s, v);
	} else if (v->path[0] == '/') {
		name_file(s, v);
	} else {
		if (s->pid != 0 && s->has_python && s->pagemap >= 0 && is_private(v) && v->rss &&
		    !tm_mappings_look_for_pools(v, s->pid, s->pagemap))
			s->is_closed = true;
		name_anonymous(s, v);
	}
	/* A glibc stack has an inaccessible guard right below it. */
	s->guard_before = strncmp(v->perms, "---p", 4) == 0 && v->path[0] == '\0' &&
			  v->end - v->begin <= GUARD_MAX;
	s->previous_end = v->end;
}

static uint64_t status_kib(uint32_t pid, const char *key)
{
	char path[40], line[256];
	uint64_t kib = 0;
	size_t len = strlen(key);

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, key, len) == 0 && line[len] == ':')
			kib = strtoull(line + len + 1, NULL, 10);
	}
	if (f)
		fclose(f);
	return kib;
}

/* --- the sheet -------------------------------------------------------------------------------- */

static int by_rss(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	if (x->rss != y->rss)
		return x->rss < y->rss ? 1 : -1;
	return strcmp(x->name, y->name);
}

static void add_mappings(struct sheet *s)
{
	qsort(s->name, s->names, sizeof(*s->name), by_rss);
	for (size_t i = 0; i < s->names; i++) {
		struct tm_doc_mapping *m = tm_document_add(s->a->doc, TM_DOC_MAPPINGS);

		m->name = tm_document_text(s->a->doc, s->name[i].name);
		m->part = part_key[s->name[i].part];
		m->bytes = s->name[i].rss;
		m->mapped_bytes = s->name[i].mapped;
		m->count = s->name[i].count;
	}
}

/* Makes live + internal + external + nonresident the resident bytes of the extents. */
static void add_blocks(struct tm_analysis *a, int64_t resident)
{
	struct tm_doc_balance *b = &a->doc->balance;
	const struct tm_ledger_site *t = &a->ledger->total;

	b->live_req = (int64_t)t->live_bytes;
	b->internal = (int64_t)(t->slot_bytes - t->live_bytes);
	b->external = a->span_bytes > t->slot_bytes ? (int64_t)(a->span_bytes - t->slot_bytes) : 0;
	b->nonresident = resident - b->live_req - b->internal - b->external;
}

static int64_t sum(const struct tm_doc_balance *b)
{
	return b->live_req + b->internal + b->external + b->cached + b->metadata + b->other_anon +
	       b->file + b->pinned + b->nonresident;
}

/* Computes the totals once all mappings were seen and the resident bytes are known. */
static void add_parts(struct sheet *s)
{
	struct tm_analysis *a = s->a;
	struct tm_doc_balance *b = &a->doc->balance;
	uint64_t zone = s->part[PART_ZONE];
	/*
	 * Without the page map it is unknown which pages are idle: assume those that spans do not
	 * need.
	 */
	uint64_t live = s->zone_seen ? s->in_extents : a->span_bytes < zone ? a->span_bytes : zone;
	if (live > zone)
		live = zone;
	add_blocks(a, (int64_t)live);
	b->cached = (int64_t)(zone - live);
	/* Resident pages of spans that were never used but came with a huge page. */
	if (b->nonresident > 0) {
		b->cached += b->nonresident;
		b->nonresident = 0;
	}
	b->metadata = (int64_t)s->part[PART_METADATA];
	b->other_anon = (int64_t)s->part[PART_OTHER];
	b->file = (int64_t)s->part[PART_FILE];
	b->pinned = (int64_t)s->part[PART_PINNED];
	b->residual = (int64_t)b->rss_bytes - sum(b);
	a->doc->hugepages.huge_bytes = s->huge;
	a->doc->hugepages.resident_bytes = zone;
	/* Unknown for each tier; for all tiers together this is it. */
	if (a->doc->tiers.count == 1 && zone)
		a->doc->tiers.at[0].huge_cov = (double)s->huge / (double)zone;
	add_mappings(s);
}

static struct sheet *new_sheet(struct tm_analysis *a)
{
	struct sheet *s = tm_document_alloc(a->doc, sizeof(*s));

	s->a = a;
	s->has_python = strncmp(a->ledger->header.program, "python", 6) == 0;
	s->has_node = strcmp(a->ledger->header.program, "node") == 0;
	for (size_t i = 0; i < a->doc->modules.count; i++) {
		const char *path = a->doc->modules.at[i].path;
		const char *file = path ? strrchr(path, '/') : NULL;

		if (file == NULL)
			continue;
		s->has_python |= strncmp(file, "/libpython", 10) == 0;
		s->has_node |= strncmp(file, "/libnode.so", 11) == 0;
		s->has_java |= strcmp(file, "/libjvm.so") == 0;
	}
	if (a->ledger->header.own_mib)
		s->own_begin =
			a->ledger->header.zone_base - ((uint64_t)a->ledger->header.own_mib << 20);
	s->pagemap = -1;
	return s;
}

static void note_own(struct tm_mapping *v, void *arg)
{
	struct sheet *s = arg;

	for (size_t i = 0; i < v->owns && s->owns < OWN_MAX; i++)
		s->own[s->owns++] = v->own[i];
}

/* The last sheet that is consistent; NULL: there is none. */
static const struct tm_ledger_sheet *last_sheet(const struct tm_ledger *l)
{
	uint64_t n = l->header.sheets;
	const struct tm_ledger_sheet *s =
		tm_ledger_at(l, TM_LEDGER_SHEETS_AT + (n + 1) % 2 * TM_LEDGER_SHEET_BYTES);

	return n == 0 || s->text_bytes == 0 || s->rss_bytes == 0 ||
			       s->text_bytes > TM_LEDGER_SHEET_BYTES - sizeof(*s)
		       ? NULL
		       : s;
}

static bool read_sheet(const struct tm_ledger_sheet *sheet,
		       void (*see)(struct tm_mapping *, void *), struct sheet *s)
{
	return sheet != NULL &&
	       tm_mappings_read(fmemopen((void *)(uintptr_t)sheet->text, sheet->text_bytes, "r"),
				see, s);
}

static bool add_running(struct tm_analysis *a)
{
	struct sheet *s = new_sheet(a);
	struct tm_doc_balance *b = &a->doc->balance;
	uint32_t pid = a->ledger->header.pid;
	char path[40];

	s->pid = (pid_t)pid;
	/* Without a sheet the library's own parts are unknown. */
	if (!read_sheet(last_sheet(a->ledger), note_own, s))
		s->own_begin = 0;
	snprintf(path, sizeof(path), "/proc/%u/pagemap", pid);
	s->pagemap = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%u/smaps", pid);
	bool seen = tm_mappings_read(fopen(path, "re"), see_mapping, s);
	if (s->pagemap >= 0)
		close(s->pagemap);
	b->rss_bytes = status_kib(pid, "VmRSS") << 10;
	if (!seen || b->rss_bytes == 0)
		return false;
	a->doc->process.threads = status_kib(pid, "Threads");
	add_parts(s);
	return true;
}

/* For an ended process: as it last saw itself. */
static bool add_sheet(struct tm_analysis *a)
{
	struct sheet *s = new_sheet(a);
	const struct tm_ledger_sheet *last = last_sheet(a->ledger);
	uint64_t end_ms = tm_ledger_now_ms(a->ledger);

	if (!read_sheet(last, note_own, s) || !read_sheet(last, see_mapping, s))
		return false;
	a->doc->balance.rss_bytes = last->rss_bytes;
	add_parts(s);
	if (last->cut)
		tm_document_push_text(a->doc, &a->doc->blind_spots,
				      "mappings that did not fit into the balance");
	if (end_ms <= last->at_ms + LATE_MS && a->doc->balance.live_req > (int64_t)last->rss_bytes)
		tm_document_push_text(a->doc, &a->doc->blind_spots,
				      "the balance is of before the program grew, or most of what "
				      "lives was never written");
	if (end_ms > last->at_ms + LATE_MS)
		tm_document_push_text(
			a->doc, &a->doc->blind_spots,
			tm_document_format(
				a->doc,
				"the balance is of %.1f s before the end; what lives is of "
				"the end",
				(double)(end_ms - last->at_ms) / 1e3));
	return true;
}

/* What an ended process wrote last; at most a second old if it was busy. */
static void add_gone(struct tm_analysis *a)
{
	const struct tm_ledger_counters *c = &a->ledger->counters;
	struct tm_doc_balance *b = &a->doc->balance;
	uint64_t resident = c->tier[0][TM_LEDGER_TIER_resident_bytes];
	/* Free pages, and spans that heaps keep although they are empty. */
	uint64_t cached = c->tier[0][TM_LEDGER_TIER_cached_bytes] + a->idle_bytes;

	if (c->at_ms == 0 || c->rss_bytes == 0) {
		add_blocks(a, 0);
		b->nonresident = TM_DOC_UNKNOWN_DELTA;
		return;
	}
	b->rss_bytes = c->rss_bytes;
	b->file = (int64_t)c->file_rss_bytes;
	b->metadata = (int64_t)c->process[TM_LEDGER_PROCESS_meta_bytes];
	b->cached = (int64_t)cached;
	b->other_anon = (int64_t)c->shmem_rss_bytes;
	b->pinned = 0;
	add_blocks(a, (int64_t)(resident > cached ? resident - cached : a->span_bytes));
	if (b->nonresident > 0)
		b->nonresident = 0;
	b->residual = (int64_t)b->rss_bytes - sum(b);
	a->doc->hugepages.huge_bytes = c->tier[0][TM_LEDGER_TIER_huge_bytes];
	a->doc->hugepages.resident_bytes = resident;
}

void tm_analysis_add_balance(struct tm_analysis *a)
{
	if (tm_ledger_runs(a->ledger) && add_running(a))
		return;
	if (!add_sheet(a))
		add_gone(a);
}
