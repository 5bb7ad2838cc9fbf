/* SPDX-License-Identifier: MIT */
/*
 * export_pprof: writes profile.proto of github.com/google/pprof, gzip-compressed. Fields are
 * written by their numbers in that file; each nested message goes through a buffer of its own,
 * since its length precedes it.
 *
 * An address in the document is a return address; the format wants one inside the call, so it is
 * written less one. An inlined frame shares the location of the frame that it was inlined into.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/buffer.h"
#include "tools/export/export.h"

enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE,
	PROFILE_MAPPING,
	PROFILE_LOCATION,
	PROFILE_FUNCTION,
	PROFILE_STRINGS,
	PROFILE_DROP_FRAMES,
	PROFILE_KEEP_FRAMES,
	PROFILE_TIME,
	PROFILE_DURATION,
	PROFILE_PERIOD_TYPE,
	PROFILE_PERIOD,
	PROFILE_COMMENT,
	PROFILE_DEFAULT_TYPE
};

static const struct {
	const char *type, *unit;
} values[] = {
	{"inuse_objects", "count"}, {"inuse_space", "bytes"},    {"alloc_objects", "count"},
	{"alloc_space", "bytes"},   {"growth_space", "bytes"},   {"unreachable_space", "bytes"},
	{"pinned_waste", "bytes"},  {"device_objects", "count"}, {"device_space", "bytes"},
};
enum {
	INUSE_OBJECTS,
	INUSE_SPACE,
	ALLOC_OBJECTS,
	ALLOC_SPACE,
	GROWTH,
	UNREACHABLE,
	PINNED,
	DEVICE_OBJECTS,
	DEVICE_SPACE,
	VALUES
};
_Static_assert(TM_ARRAY_LEN(values) == VALUES, "one each");

/* The profile's string table: number of each text, found by hash. */
struct strings {
	struct tm_buffer written; /* encoded strings, as fields of the profile */
	const char **slot;        /* texts of the document or of the profile */
	uint64_t *number;
	size_t size; /* a power of two */
	uint64_t count;
};

struct profile {
	const struct tm_document *doc;
	struct tm_document texts; /* owns the labels */
	struct strings strings;
	struct tm_buffer out;
	/*
	 * Id of a frame's function, by frame; 0: it has no name. Ids have no gaps, since a reader
	 * that finds names itself continues numbering from the count.
	 */
	uint64_t *function;
	uint64_t functions;
	bool failed;
};

static void put_varint(struct tm_buffer *b, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		tm_buffer_add_byte(b, (unsigned char)(value | 0x80));
	tm_buffer_add_byte(b, (unsigned char)value);
}

/* Writes a number; zero is the default and is omitted. */
static void put_number(struct tm_buffer *b, unsigned field, uint64_t value)
{
	if (value == 0)
		return;
	put_varint(b, field << 3);
	put_varint(b, value);
}

static void put_bytes(struct tm_buffer *b, unsigned field, const void *bytes, size_t len)
{
	put_varint(b, field << 3 | 2);
	put_varint(b, len);
	tm_buffer_add(b, bytes, len);
}

/* Writes a finished message into its parent and empties it for the next. */
static void put_message(struct profile *p, struct tm_buffer *b, unsigned field,
			struct tm_buffer *message)
{
	put_bytes(b, field, message->at, message->len);
	message->len = 0;
	p->failed |= message->failed;
}

static size_t hash(const char *text)
{
	uint64_t h = UINT64_C(14695981039346656037);

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * UINT64_C(1099511628211);
	return (size_t)(h ^ h >> 29);
}

static bool widen(struct strings *s)
{
	struct strings wider = *s;

	wider.size = s->size ? s->size * 2 : 1024;
	wider.slot = calloc(wider.size, sizeof(*wider.slot));
	wider.number = calloc(wider.size, sizeof(*wider.number));
	if (wider.slot == NULL || wider.number == NULL) {
		free(wider.slot);
		free(wider.number);
		return false;
	}
	for (size_t i = 0; i < s->size; i++) {
		if (s->slot[i] == NULL)
			continue;
		size_t at = hash(s->slot[i]) & (wider.size - 1);
		while (wider.slot[at])
			at = (at + 1) & (wider.size - 1);
		wider.slot[at] = s->slot[i];
		wider.number[at] = s->number[i];
	}
	free(s->slot);
	free(s->number);
	*s = wider;
	return true;
}

/* Number of a text, which must outlive the profile; 0 is "". */
static uint64_t string(struct profile *p, const char *text)
{
	struct strings *s = &p->strings;

	if (text == NULL || *text == '\0')
		return 0;
	if (s->count * 2 >= s->size && !widen(s)) {
		p->failed = true;
		return 0;
	}
	size_t at = hash(text) & (s->size - 1);
	while (s->slot[at] && strcmp(s->slot[at], text) != 0)
		at = (at + 1) & (s->size - 1);
	if (s->slot[at] == NULL) {
		s->slot[at] = text;
		s->number[at] = ++s->count;
		put_bytes(&s->written, PROFILE_STRINGS, text, strlen(text));
	}
	return s->number[at];
}

static void put_value_type(struct profile *p, unsigned field, const char *type, const char *unit)
{
	struct tm_buffer m = {0};

	put_number(&m, 1, string(p, type));
	put_number(&m, 2, string(p, unit));
	put_message(p, &p->out, field, &m);
	tm_buffer_clear(&m);
}

static void put_mapping(struct profile *p, size_t number, bool named)
{
	const struct tm_doc_module *module = &p->doc->modules.at[number];
	struct tm_buffer m = {0};

	put_number(&m, 1, number + 1);
	if (module->base != TM_DOC_UNKNOWN && module->end != TM_DOC_UNKNOWN) {
		put_number(&m, 2, module->base);
		put_number(&m, 3, module->end);
	}
	if (module->offset != TM_DOC_UNKNOWN)
		put_number(&m, 4, module->offset);
	put_number(&m, 5, string(p, module->path));
	put_number(&m, 6, string(p, module->build_id));
	/* has_functions, has_filenames, has_line_numbers, has_inline_frames */
	for (unsigned field = 7; field <= 10; field++)
		put_number(&m, field, named);
	put_message(p, &p->out, PROFILE_MAPPING, &m);
	tm_buffer_clear(&m);
}

/*
 * The reader takes the first mapping for the program's: the module that is known to be it, else the
 * first.
 */
static size_t program_of(const struct tm_document *d)
{
	for (size_t i = 0; i < d->modules.count; i++) {
		const char *id = d->modules.at[i].build_id;

		if (id && d->process.exe_build_id && strcmp(id, d->process.exe_build_id) == 0)
			return i;
	}
	for (size_t i = 0; i < d->modules.count; i++) {
		const char *path = d->modules.at[i].path;
		const char *slash = path ? strrchr(path, '/') : NULL;

		if (slash && d->process.program && strcmp(slash + 1, d->process.program) == 0)
			return i;
	}
	return 0;
}

/*
 * A module counts as symbolised if one of its frames has a name; else the reader looks for symbols.
 */
static void put_mappings(struct profile *p)
{
	const struct tm_document *d = p->doc;
	bool *named = calloc(d->modules.count + 1, sizeof(*named));
	size_t program = program_of(d);

	if (named == NULL) {
		p->failed = true;
		return;
	}
	for (size_t i = 0; i < d->frames.count; i++) {
		if (d->frames.at[i].fn && d->frames.at[i].module < d->modules.count)
			named[d->frames.at[i].module] = true;
	}
	if (d->modules.count)
		put_mapping(p, program, named[program]);
	for (size_t i = 0; i < d->modules.count; i++) {
		if (i != program)
			put_mapping(p, i, named[i]);
	}
	free(named);
}

/*
 * Removes the angle brackets of Python's "<module>", which the reader would drop as template
 * arguments.
 */
static const char *without_angles(struct profile *p, const char *name)
{
	char *text = tm_document_alloc(&p->texts, strlen(name) + 1);

	strcpy(text, name);
	for (char *at = text; *at; at++)
		*at = *at == '<' ? '[' : *at == '>' ? ']' : *at;
	return text;
}

static void put_functions(struct profile *p)
{
	const struct tm_document *d = p->doc;
	struct tm_buffer m = {0};

	for (size_t i = 0; i < d->frames.count; i++) {
		const struct tm_doc_frame *f = &d->frames.at[i];

		if (f->fn == NULL)
			continue;
		put_number(&m, 1, p->function[i]);
		const char *name = f->lang == TM_DOC_LANG_PY ? without_angles(p, f->fn) : f->fn;
		put_number(&m, 2, string(p, name));
		put_number(&m, 3, string(p, f->symbol && name == f->fn ? f->symbol : name));
		put_number(&m, 4, string(p, f->file));
		put_message(p, &p->out, PROFILE_FUNCTION, &m);
	}
	put_number(&m, 1, p->functions + 1);
	put_number(&m, 2, string(p, TM_NO_STACK));
	put_message(p, &p->out, PROFILE_FUNCTION, &m);
	tm_buffer_clear(&m);
}

static void number_functions(struct profile *p)
{
	const struct tm_document *d = p->doc;

	p->function = tm_document_alloc(&p->texts, (d->frames.count + 1) * sizeof(*p->function));
	for (size_t i = 0; i < d->frames.count; i++) {
		if (d->frames.at[i].fn)
			p->function[i] = ++p->functions;
	}
}

static void put_line(struct profile *p, struct tm_buffer *location, uint64_t function,
		     uint64_t line)
{
	struct tm_buffer m = {0};

	put_number(&m, 1, function);
	put_number(&m, 2, line == TM_DOC_UNKNOWN ? 0 : line);
	put_message(p, location, 4, &m);
	tm_buffer_clear(&m);
}

/* Writes one location per frame, with the frames that it is inlined into as further lines. */
static void put_locations(struct profile *p)
{
	const struct tm_document *d = p->doc;
	struct tm_buffer m = {0};

	for (size_t i = 0; i < d->frames.count; i++) {
		const struct tm_doc_frame *f = &d->frames.at[i];
		size_t at = i;

		put_number(&m, 1, i + 1);
		if (f->module != TM_DOC_NOWHERE)
			put_number(&m, 2, (uint64_t)f->module + 1);
		if (f->addr != TM_DOC_UNKNOWN && f->addr != 0)
			put_number(&m, 3, f->addr - 1);
		/* Usually a few; the limit also ends a cyclic chain. */
		for (int depth = 0; depth < 64; depth++) {
			if (d->frames.at[at].fn)
				put_line(p, &m, p->function[at], d->frames.at[at].line);
			if (d->frames.at[at].inline_of == TM_DOC_NOWHERE)
				break;
			at = d->frames.at[at].inline_of;
		}
		put_message(p, &p->out, PROFILE_LOCATION, &m);
	}
	put_number(&m, 1, d->frames.count + 1);
	put_line(p, &m, p->functions + 1, 0);
	put_message(p, &p->out, PROFILE_LOCATION, &m);
	tm_buffer_clear(&m);
}

static uint64_t known(uint64_t value)
{
	return value == TM_DOC_UNKNOWN ? 0 : value;
}

static void put_label(struct profile *p, struct tm_buffer *sample, const char *key,
		      const char *text)
{
	struct tm_buffer m = {0};

	if (text && *text) {
		put_number(&m, 1, string(p, key));
		put_number(&m, 2, string(p, text));
		put_message(p, sample, 3, &m);
	}
	tm_buffer_clear(&m);
}

static void put_number_label(struct profile *p, struct tm_buffer *sample, const char *key,
			     uint64_t value, const char *unit)
{
	struct tm_buffer m = {0};

	put_number(&m, 1, string(p, key));
	put_number(&m, 3, value);
	put_number(&m, 4, string(p, unit));
	if (value)
		put_message(p, sample, 3, &m);
	tm_buffer_clear(&m);
}

/*
 * Writes the location ids of a stack, packed; a frame with inlined ones is part of their location.
 */
static void put_stack(struct profile *p, struct tm_buffer *sample, uint32_t stack)
{
	const struct tm_document *d = p->doc;
	struct tm_buffer ids = {0};
	uint32_t holder = TM_DOC_NOWHERE;

	if (stack == TM_DOC_NOWHERE || d->stacks.at[stack].frames.count == 0) {
		put_varint(&ids, d->frames.count + 1);
	} else {
		const struct tm_doc_numbers *frames = &d->stacks.at[stack].frames;

		for (size_t i = 0; i < frames->count; i++) {
			if (frames->at[i] != holder)
				put_varint(&ids, frames->at[i] + 1);
			holder = d->frames.at[frames->at[i]].inline_of;
		}
	}
	put_message(p, sample, 1, &ids);
	tm_buffer_clear(&ids);
}

static void put_sample(struct profile *p, const struct tm_doc_site *site, const char *age,
		       const uint64_t amounts[VALUES])
{
	static const char *const leak_name[] = {"", "growing", "unreachable"};
	struct tm_buffer sample = {0}, packed = {0};
	int leak = known(site->unreachable_bytes) ? 2 : known(site->growth_bytes) ? 1 : 0;

	put_stack(p, &sample, site->stack);
	for (int i = 0; i < VALUES; i++)
		put_varint(&packed, amounts[i] < INT64_MAX ? amounts[i] : INT64_MAX);
	put_message(p, &sample, 2, &packed);
	put_label(p, &sample, "tier", tm_document_tier_name(site->tier));
	put_label(p, &sample, "site", site->id);
	put_label(p, &sample, "tag", site->tag);
	put_label(p, &sample, "leak", leak_name[leak]);
	put_label(p, &sample, "age_bucket", age);
	if (known(site->live_objs))
		put_number_label(p, &sample, "size_class",
				 known(site->slot_bytes) / site->live_objs, "bytes");
	put_message(p, &p->out, PROFILE_SAMPLE, &sample);
	tm_buffer_clear(&sample);
	tm_buffer_clear(&packed);
}

/*
 * Writes bytes and objects of a site by age, in buckets of log2 of seconds + 1, labelled with their
 * bounds.
 */
static void put_site(struct profile *p, const struct tm_doc_site *s)
{
	static const struct {
		const char *name;
		size_t end;
	} ages[] = {{"below 1 min", 7},
		    {"1 to 17 min", 11},
		    {"17 min to 1.1 h", 13},
		    {"1.1 to 36 h", 18},
		    {"above 36 h", SIZE_MAX}};
	uint64_t amounts[VALUES] = {
		[INUSE_OBJECTS] = known(s->live_objs),  [INUSE_SPACE] = known(s->live_bytes),
		[ALLOC_OBJECTS] = known(s->alloc_objs), [ALLOC_SPACE] = known(s->alloc_bytes),
		[GROWTH] = known(s->growth_bytes),      [UNREACHABLE] = known(s->unreachable_bytes),
		[PINNED] = known(s->frag_pinned_bytes),
	};
	size_t at = 0;

	for (size_t i = 0; i < TM_ARRAY_LEN(ages) && s->age_bytes_hist_log2s.count; i++) {
		uint64_t part[VALUES] = {0};

		for (; at < s->age_bytes_hist_log2s.count && at < ages[i].end; at++) {
			part[INUSE_SPACE] += known(s->age_bytes_hist_log2s.at[at]);
			if (at < s->age_hist_log2s.count)
				part[INUSE_OBJECTS] += known(s->age_hist_log2s.at[at]);
		}
		if (part[INUSE_SPACE] > amounts[INUSE_SPACE])
			part[INUSE_SPACE] = amounts[INUSE_SPACE];
		if (part[INUSE_OBJECTS] > amounts[INUSE_OBJECTS])
			part[INUSE_OBJECTS] = amounts[INUSE_OBJECTS];
		amounts[INUSE_SPACE] -= part[INUSE_SPACE];
		amounts[INUSE_OBJECTS] -= part[INUSE_OBJECTS];
		if (part[INUSE_SPACE] || part[INUSE_OBJECTS])
			put_sample(p, s, ages[i].name, part);
	}
	for (int i = 0; i < VALUES; i++) {
		if (amounts[i]) {
			put_sample(p, s, NULL, amounts);
			return;
		}
	}
}

static void put_gpu_site(struct profile *p, const struct tm_doc_gpu *g,
			 const struct tm_doc_gpu_site *s)
{
	struct tm_buffer sample = {0}, packed = {0};
	char device[24];

	if (known(s->live_bytes) == 0 && known(s->live_objs) == 0)
		return;
	put_stack(p, &sample, s->stack);
	for (int i = 0; i < VALUES; i++) {
		uint64_t amount = i == DEVICE_SPACE     ? known(s->live_bytes)
				  : i == DEVICE_OBJECTS ? known(s->live_objs)
							: 0;

		put_varint(&packed, amount < INT64_MAX ? amount : INT64_MAX);
	}
	put_message(p, &sample, 2, &packed);
	snprintf(device, sizeof(device), "%llu", (unsigned long long)known(g->dev));
	put_label(p, &sample, "device", tm_document_text(&p->texts, device));
	put_label(p, &sample, "memory", g->memory ? g->memory : g->api);
	put_label(p, &sample, "tier", tm_document_tier_name(s->tier));
	put_label(p, &sample, "site", s->site);
	put_label(p, &sample, "reserved_by", s->reserved_by);
	put_message(p, &p->out, PROFILE_SAMPLE, &sample);
	tm_buffer_clear(&sample);
	tm_buffer_clear(&packed);
}

static void put_gpu(struct profile *p)
{
	for (size_t i = 0; i < p->doc->gpu.count; i++) {
		const struct tm_doc_gpu *g = &p->doc->gpu.at[i];

		for (size_t k = 0; k < g->sites.count; k++)
			put_gpu_site(p, g, &g->sites.at[k]);
	}
}

static void put_head(struct profile *p)
{
	const struct tm_doc_capture *c = &p->doc->capture;
	struct tm_buffer *out = &p->out;

	for (int i = 0; i < VALUES; i++)
		put_value_type(p, PROFILE_SAMPLE_TYPE, values[i].type, values[i].unit);
	put_number(out, PROFILE_DROP_FRAMES,
		   string(p, "malloc|calloc|realloc|free|.*_aligned_alloc|posix_memalign|memalign|"
			     "operator new.*|tm_.*"));
	if (c->t1_unix_ns != TM_DOC_UNKNOWN) {
		put_number(out, PROFILE_TIME, c->t1_unix_ns);
		if (c->t0_unix_ns != TM_DOC_UNKNOWN && c->t0_unix_ns < c->t1_unix_ns)
			put_number(out, PROFILE_DURATION, c->t1_unix_ns - c->t0_unix_ns);
	}
	put_value_type(p, PROFILE_PERIOD_TYPE, "space", "bytes");
	put_number(out, PROFILE_PERIOD,
		   c->counts == TM_DOC_SAMPLED && known(c->stack_interval_bytes)
			   ? c->stack_interval_bytes
			   : 1);
	put_number(out, PROFILE_DEFAULT_TYPE, string(p, values[INUSE_SPACE].type));
	for (size_t i = 0; i < p->doc->blind_spots.count; i++)
		put_number(out, PROFILE_COMMENT,
			   string(p, tm_document_format(&p->texts, "blind spot: %s",
							p->doc->blind_spots.at[i])));
}

bool tm_export_pprof(const struct tm_document *doc, const struct tm_export_options *o, FILE *out)
{
	struct profile p = {.doc = doc};
	struct tm_buffer file = {0};

	(void)o;
	tm_document_init(&p.texts);
	put_bytes(&p.strings.written, PROFILE_STRINGS, "", 0);
	put_head(&p);
	put_mappings(&p);
	for (size_t i = 0; i < doc->sites.count; i++)
		put_site(&p, &doc->sites.at[i]);
	put_gpu(&p);
	number_functions(&p);
	put_locations(&p);
	put_functions(&p);
	tm_buffer_add(&p.out, p.strings.written.at, p.strings.written.len);
	tm_buffer_add_gzip(&file, p.out.at, p.out.len);
	p.failed |= p.out.failed || p.strings.written.failed || file.failed;
	if (!p.failed)
		fwrite(file.at, 1, file.len, out);
	tm_buffer_clear(&file);
	tm_buffer_clear(&p.out);
	tm_buffer_clear(&p.strings.written);
	tm_document_clear(&p.texts);
	free(p.strings.slot);
	free(p.strings.number);
	return !p.failed && !ferror(out);
}
