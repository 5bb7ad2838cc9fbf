/* SPDX-License-Identifier: MIT */
/* Names of call sites: stable ids, stacks, and frames with functions and lines. See analysis.h. */
#include <stdlib.h>
#include <string.h>

#include "tools/analysis/analysis.h"

#define INLINED_MAX 16u
#define ID_DIGITS 4u

/* --- stacks of keys --------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
	const struct tm_ledger_stack *x = *(const struct tm_ledger_stack *const *)a;
	const struct tm_ledger_stack *y = *(const struct tm_ledger_stack *const *)b;

	if (x->site != y->site)
		return x->site < y->site ? -1 : 1;
	if (x->height != y->height)
		return x->height < y->height ? -1 : 1;
	if (x->samples != y->samples)
		return x->samples > y->samples ? -1 : 1;
	return x < y ? -1 : x > y;
}

static void sort_stacks(struct tm_analysis *a)
{
	const struct tm_ledger_stack *s = tm_ledger_at(a->ledger, TM_LEDGER_STACKS_AT);
	uint32_t count = a->ledger->header.stacks;

	a->stacks = tm_document_alloc(a->doc, (count + 1) * sizeof(*a->stacks));
	for (uint32_t i = 0; i < count; i++, s++) {
		if (s->site == 0)
			continue;
		if (s->frames == 0 || s->frames > TM_LEDGER_STACK_DEPTH ||
		    (uint64_t)s->frames_at + s->frames > TM_LEDGER_FRAMES) {
			a->ledger->torn++;
			continue;
		}
		a->stacks[a->stack_count++] = s;
	}
	qsort(a->stacks, a->stack_count, sizeof(*a->stacks), by_key);
}

/* The stack that most samples of the key have. */
static const struct tm_ledger_stack *find_stack(const struct tm_analysis *a, uint64_t address,
						uint32_t height)
{
	size_t low = 0, high = a->stack_count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct tm_ledger_stack *s = a->stacks[middle];

		if (s->site < address || (s->site == address && s->height < height))
			low = middle + 1;
		else
			high = middle;
	}
	if (low < a->stack_count && a->stacks[low]->site == address &&
	    a->stacks[low]->height == height)
		return a->stacks[low];
	return NULL;
}

/* --- ids -------------------------------------------------------------------------------------- */

struct named {
	uint64_t hash;
	size_t site;
};

static uint64_t fold(uint64_t hash, const void *data, size_t bytes)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
	return hash;
}

/* Adds the innermost Python function and its line to the hash. */
static uint64_t fold_python(uint64_t hash, const struct tm_ledger *l,
			    const struct tm_ledger_stack *s)
{
	const uint64_t *words = tm_ledger_at(l, TM_LEDGER_FRAMES_AT);

	for (uint32_t i = 0; s && i < s->frames; i++) {
		uint64_t word = words[s->frames_at + i];
		const struct tm_ledger_python *p = tm_ledger_python(l, word);

		if (p == NULL)
			continue;
		word = word >> 32 & 0x3fffffff;
		hash = fold(hash, &word, sizeof(word));
		return fold(hash, p + 1, (size_t)p->file_bytes + p->name_bytes);
	}
	return hash;
}

/* Hash of the file's build id, the offset in it and the height: the same in every run. */
static uint64_t hash_of(const struct tm_analysis *a, const struct tm_ledger_site *s)
{
	const struct tm_ledger *l = a->ledger;
	const struct tm_ledger_stack *stack = find_stack(a, s->address, s->height);
	uint64_t address = tm_ledger_return_address(l, s->address, stack);
	const struct tm_ledger_module *m = tm_ledger_module(l, address, l->header.epoch);
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	uint64_t offset = m ? address - m->base : address;

	if (m && m->build_id_bytes > 0 && m->build_id_bytes <= sizeof(m->build_id))
		hash = fold(hash, m->build_id, m->build_id_bytes);
	else if (m)
		hash = fold(hash, m->path, strnlen(m->path, sizeof(m->path)));
	hash = fold(hash, &offset, sizeof(offset));
	hash = fold(hash, &s->height, sizeof(s->height));
	if (address != s->address)
		hash = fold_python(hash, l, stack);
	/* so that the leading digits are well mixed, too */
	return hash * UINT64_C(0x9e3779b97f4a7c15);
}

static int by_hash(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return x->site < y->site ? -1 : x->site > y->site;
}

/* Number of leading hexadecimal digits that both have in common. */
static unsigned common_digits(uint64_t a, uint64_t b)
{
	return a == b ? 16 : (unsigned)__builtin_clzll(a ^ b) / 4;
}

/*
 * Ids are the shortest prefix of the hash that no other site has; two sites of one place get
 * suffixes.
 */
void tm_analysis_add_ids(struct tm_analysis *a)
{
	struct tm_document *doc = a->doc;
	size_t n = doc->sites.count, same = 0;
	struct named *named = tm_document_alloc(doc, (n + 1) * sizeof(*named));

	sort_stacks(a);
	for (size_t i = 0; i < n; i++)
		named[i] = (struct named){hash_of(a, &a->ledger->sites[i]), i};
	qsort(named, n, sizeof(*named), by_hash);
	for (size_t i = 0; i < n; i++) {
		unsigned digits = ID_DIGITS - 1;

		if (i > 0 && common_digits(named[i].hash, named[i - 1].hash) > digits)
			digits = common_digits(named[i].hash, named[i - 1].hash);
		if (i + 1 < n && common_digits(named[i].hash, named[i + 1].hash) > digits)
			digits = common_digits(named[i].hash, named[i + 1].hash);
		same = i > 0 && named[i].hash == named[i - 1].hash ? same + 1 : 0;
		digits = digits < 16 ? digits + 1 : 16;
		doc->sites.at[named[i].site].id =
			same ? tm_document_format(doc, "s:%016llx.%zu",
						  (unsigned long long)named[i].hash, same)
			     : tm_document_format(doc, "s:%0*llx", (int)digits,
						  (unsigned long long)named[i].hash >>
							  (64 - 4 * digits));
	}
}

/* --- frames ----------------------------------------------------------------------------------- */

/* Cache of frames by return address: many stacks share their outer half. */
struct seen {
	uint64_t address;
	uint32_t first, count;
};

struct tm_analysis_seen {
	struct seen *slot;
	size_t size, used;
};

static struct seen *seen_of(struct tm_document *doc, struct tm_analysis_seen *t, uint64_t address)
{
	if (t->used * 2 >= t->size) {
		struct tm_analysis_seen wider = {NULL, t->size ? t->size * 2 : 1024, t->used};

		wider.slot = tm_document_alloc(doc, wider.size * sizeof(*wider.slot));
		for (size_t i = 0; i < t->size; i++) {
			size_t to = t->slot[i].address * 0x9e3779b97f4a7c15u >> 20;

			if (t->slot[i].count == 0)
				continue;
			while (wider.slot[to & (wider.size - 1)].count)
				to++;
			wider.slot[to & (wider.size - 1)] = t->slot[i];
		}
		*t = wider;
	}
	size_t at = address * 0x9e3779b97f4a7c15u >> 20;
	while (t->slot[at & (t->size - 1)].count && t->slot[at & (t->size - 1)].address != address)
		at++;
	struct seen *s = &t->slot[at & (t->size - 1)];
	t->used += s->count == 0;
	s->address = address;
	return s;
}

static uint32_t module_number(const struct tm_analysis *a, const struct tm_ledger_module *m)
{
	const struct tm_ledger_module *first = tm_ledger_at(a->ledger, TM_LEDGER_MODULES_AT);

	/* modules[] has all records in order (add_modules) */
	return m ? (uint32_t)(m - first) : TM_DOC_NOWHERE;
}

static size_t symbols_at(struct tm_analysis *a, const struct tm_ledger_module *m, uint64_t address,
			 struct tm_symbol *ret)
{
	if (m == NULL || a->symbols == NULL)
		return 0;

	const char *path = a->doc->modules.at[module_number(a, m)].path;
	const struct tm_symbols_module want = {
		.path = path ? path : "",
		.build_id = m->build_id,
		.build_id_bytes = m->build_id_bytes <= sizeof(m->build_id) ? m->build_id_bytes : 0,
	};
	/* Look up the call, not the instruction after it. */
	return tm_symbols_find(a->symbols, &want, address - m->base - 1, ret, INLINED_MAX);
}

/* Adds the frames of an address; *ret_first is the number of the innermost. Returns how many. */
static uint32_t add_frames(struct tm_analysis *a, uint64_t address, uint32_t epoch, bool named,
			   uint32_t *ret_first)
{
	const struct tm_ledger_module *m = tm_ledger_module(a->ledger, address, epoch);
	struct tm_symbol symbol[INLINED_MAX] = {{0}};
	size_t n = named ? symbols_at(a, m, address, symbol) : 0;
	uint32_t count = n ? (uint32_t)n : 1;

	*ret_first = (uint32_t)a->doc->frames.count;
	for (uint32_t i = 0; i < count; i++) {
		struct tm_doc_frame *f = tm_document_add(a->doc, TM_DOC_FRAMES);
		const struct tm_symbol *s = &symbol[i];

		f->module = module_number(a, m);
		f->addr = address;
		f->fn = tm_document_text(a->doc, s->function);
		f->symbol = tm_document_text(a->doc, s->raw);
		f->file = tm_document_text(a->doc, s->file);
		if (s->file && s->line)
			f->line = s->line;
		f->inline_of = s->is_inlined && i + 1 < count ? *ret_first + i + 1 : TM_DOC_NOWHERE;
		f->lang = s->is_cpp ? TM_DOC_LANG_CPP : TM_DOC_LANG_C;
		f->sym = s->from == TM_SYMBOLS_DEBUG    ? TM_DOC_SYM_DEBUG
			 : s->from == TM_SYMBOLS_SYMTAB ? TM_DOC_SYM_SYMTAB
							: TM_DOC_SYM_NONE;
	}
	return count;
}

/* Adds a Python function's frame; its file is a path in the target's namespace. */
static uint32_t add_python_frame(struct tm_analysis *a, uint64_t word, uint32_t *ret_first)
{
	const struct tm_ledger_python *p = tm_ledger_python(a->ledger, word);
	struct tm_doc_frame *f = tm_document_add(a->doc, TM_DOC_FRAMES);

	*ret_first = (uint32_t)f->id;
	f->module = TM_DOC_NOWHERE;
	f->inline_of = TM_DOC_NOWHERE;
	f->addr = 0;
	f->lang = TM_DOC_LANG_PY;
	f->sym = p ? TM_DOC_SYM_DEBUG : TM_DOC_SYM_NONE;
	f->fn = "(damaged)";
	if (p == NULL)
		return 1;
	const char *text = (const char *)(p + 1);
	f->file = tm_document_format(a->doc, "%.*s", (int)p->file_bytes, text);
	f->fn = tm_document_format(a->doc, "%.*s", (int)p->name_bytes, text + p->file_bytes);
	f->symbol = f->fn;
	f->line = word >> 32 & 0x3fffffff;
	return 1;
}

/* --- stacks ----------------------------------------------------------------------------------- */

double tm_analysis_stack_share(const struct tm_analysis *a, size_t site, uint64_t *ret_samples)
{
	const struct tm_ledger_site *s = &a->ledger->sites[site];
	const struct tm_ledger_stack *best = find_stack(a, s->address, s->height);
	uint64_t all = 0;

	*ret_samples = 0;
	if (best == NULL)
		return 1;
	for (size_t i = 0; i < a->stack_count; i++) {
		if (a->stacks[i]->site == best->site && a->stacks[i]->height == best->height)
			all += a->stacks[i]->samples;
	}
	*ret_samples = all;
	return all ? (double)best->samples / (double)all : 1;
}

/* Appends a word's frames to a stack; returns the innermost one. */
static uint32_t push_frame(struct tm_analysis *a, struct tm_doc_stack *stack,
			   struct tm_analysis_seen *seen, uint64_t word, uint32_t epoch, bool named)
{
	bool is_python = word & TM_LEDGER_PYTHON_FRAME;
	/* The named and the nameless form of an address are separate entries. */
	struct seen *known = seen_of(a->doc, seen, is_python ? word : word << 1 | named);

	if (known->count == 0)
		known->count = is_python ? add_python_frame(a, word, &known->first)
					 : add_frames(a, word, epoch, named, &known->first);
	for (uint32_t k = 0; k < known->count; k++)
		tm_document_push_number(a->doc, &stack->frames, known->first + k);
	return known->first;
}

/* Whether a frame is the interpreter's loop, which runs Python functions. */
static bool runs_python(const struct tm_analysis *a, uint64_t address, const struct tm_doc_frame *f)
{
	const struct tm_ledger_header *h = &a->ledger->header;

	if (address > h->python_begin && address <= h->python_end)
		return true;
	return f->fn && strncmp(f->fn, "_PyEval_EvalFrameDefault", 24) == 0;
}

/*
 * Appends the Python functions that one call of the loop runs; returns the index of the next one.
 */
static uint32_t push_python(struct tm_analysis *a, struct tm_doc_stack *stack,
			    struct tm_analysis_seen *seen, const uint64_t *words, uint32_t next,
			    uint32_t count)
{
	while (next < count) {
		uint64_t word = words[next++];

		push_frame(a, stack, seen, word & ~TM_LEDGER_PYTHON_ENTRY, 0, true);
		if (word & TM_LEDGER_PYTHON_ENTRY)
			break;
	}
	return next;
}

/* Adds a stack and returns its number. */
static uint32_t add_stack(struct tm_analysis *a, uint64_t address, uint32_t height, bool named)
{
	const struct tm_ledger_stack *captured = find_stack(a, address, height);
	const uint64_t *frames = tm_ledger_at(a->ledger, TM_LEDGER_FRAMES_AT);
	uint32_t count = 1, epoch = a->ledger->header.epoch;

	if (address == 0 || (captured == NULL && address >> 47))
		return TM_DOC_NOWHERE;
	if (captured) {
		frames += captured->frames_at;
		count = captured->frames;
		epoch = captured->epoch;
	} else {
		frames = &address;
	}
	struct tm_doc_stack *stack = tm_document_add(a->doc, TM_DOC_STACKS);
	stack->truncated = captured == NULL || captured->truncated != 0;
	uint32_t native = count;
	while (native > 0 && frames[native - 1] & TM_LEDGER_PYTHON_FRAME)
		native--;
	uint32_t next = native;
	for (uint32_t i = 0; i < native; i++) {
		uint32_t added = push_frame(a, stack, a->seen, frames[i], epoch, named);

		if (runs_python(a, frames[i], &a->doc->frames.at[added]))
			next = push_python(a, stack, a->seen, frames, next, count);
	}
	while (next < count)
		next = push_python(a, stack, a->seen, frames, next, count);
	return (uint32_t)stack->id;
}

uint32_t tm_analysis_stack_of(struct tm_analysis *a, uint64_t address, uint32_t height)
{
	return add_stack(a, address, height, true);
}

void tm_analysis_add_stacks(struct tm_analysis *a)
{
	a->seen = tm_document_alloc(a->doc, sizeof(*a->seen));
	for (size_t i = 0; i < a->doc->sites.count; i++) {
		const struct tm_ledger_site *s = &a->ledger->sites[i];

		a->doc->sites.at[i].stack =
			add_stack(a, s->address, s->height, a->wants_symbols[i]);
	}
}

/* --- which frame matters ---------------------------------------------------------------------- */

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

bool tm_analysis_is_library(const char *fn, const char *file)
{
	static const char *const functions[] = {
		"std::",
		"__gnu_cxx::",
		"operator new",
		"void* std::",
		"malloc",
		"calloc",
		"realloc",
		"__libc_",
		"_dl_",
		"__cxa_",
		"_PyMem_",
		"PyMem_",
		"_PyObject_Malloc",
		"PyObject_Malloc",
		"boost::",
		"__gthread",
		"bool std::",
		/* wrappers of allocation functions in large programs and libraries */
		"xmalloc",
		"xcalloc",
		"xrealloc",
		"xstrdup",
		"g_malloc",
		"g_realloc",
		"CRYPTO_malloc",
		"CRYPTO_zalloc",
		"CRYPTO_realloc",
		"os::malloc",
		"os::realloc",
		"AllocateHeap",
		"ReallocateHeap",
	};

	for (size_t i = 0; fn && i < TM_ARRAY_LEN(functions); i++) {
		if (begins(fn, functions[i]))
			return true;
	}
	return file && (strstr(file, "/c++/") || strstr(file, "/bits/"));
}

/*
 * Whether a frame belongs to the C or C++ library or is an allocation function, and so not where a
 * reader would find a mistake.
 */
bool tm_analysis_is_plumbing(const struct tm_document *doc, const struct tm_doc_frame *f)
{
	static const char *const files[] = {
		"libstdc++.so", "libc.so",    "libc++.so",        "ld-linux",
		"libgcc_s",     "libpthread", "libtiermalloc.so",
	};
	const char *path = f->module < doc->modules.count ? doc->modules.at[f->module].path : NULL;
	const char *name = path ? strrchr(path, '/') : NULL;

	if (tm_analysis_is_library(f->fn, f->file))
		return true;
	/*
	 * Names of template functions begin with the return type: "std::enable_if<...>::type
	 * std::f".
	 */
	for (size_t i = 0; name && i < TM_ARRAY_LEN(files); i++) {
		if (begins(name + 1, files[i]))
			return true;
	}
	return false;
}

/* Whether a function is the interpreter's own: an outer frame shows the program's line. */
bool tm_analysis_is_interpreter(const struct tm_document *doc, const struct tm_doc_frame *f)
{
	const char *path = f->module < doc->modules.count ? doc->modules.at[f->module].path : NULL;
	const char *name = path ? strrchr(path, '/') : NULL;

	return name && (begins(name, "/python3") || begins(name, "/libpython3"));
}

const struct tm_doc_frame *tm_analysis_frame(const struct tm_document *doc,
					     const struct tm_doc_site *site)
{
	return tm_analysis_frame_of(doc, site->stack);
}

const struct tm_doc_frame *tm_analysis_frame_of(const struct tm_document *doc, uint32_t stack)
{
	const struct tm_doc_frame *second = NULL;

	if (stack >= doc->stacks.count)
		return NULL;
	const struct tm_doc_numbers *list = &doc->stacks.at[stack].frames;

	for (size_t i = 0; i < list->count; i++) {
		const struct tm_doc_frame *f = &doc->frames.at[list->at[i]];

		if (tm_analysis_is_plumbing(doc, f))
			continue;
		if (!tm_analysis_is_interpreter(doc, f))
			return f;
		if (second == NULL)
			second = f;
	}
	if (second)
		return second;
	return list->count ? &doc->frames.at[list->at[0]] : NULL;
}

/* Length of a name without its parameters and the suffix of a clone. */
static size_t name_length(const char *fn)
{
	int depth = 0;

	for (size_t i = 0; fn[i]; i++) {
		if (fn[i] == '<')
			depth++;
		else if (fn[i] == '>' && i > 0 && fn[i - 1] != '-')
			depth--;
		else if (fn[i] == '(' && depth <= 0 && i > 0 &&
			 !begins(fn + i, "(anonymous namespace)") && !begins(fn + i, "()") &&
			 !begins(fn + i, "(lambda"))
			return i;
		else if (begins(fn + i, "() ") || (begins(fn + i, "()") && fn[i + 2] == '\0'))
			return i > 0 && !begins(fn + (i >= 8 ? i - 8 : 0), "operator") ? i : i + 2;
	}
	return strlen(fn);
}

void tm_analysis_name_frame(const struct tm_document *doc, const struct tm_doc_frame *f, char *buf,
			    size_t size)
{
	const char *path = NULL;
	uint64_t base = 0;

	if (f == NULL) {
		snprintf(buf, size, "(no call site: inherited, or beyond the table)");
		return;
	}
	if (f->module < doc->modules.count) {
		path = doc->modules.at[f->module].path;
		base = doc->modules.at[f->module].base;
	}
	if (f->fn && f->file && f->line != TM_DOC_UNKNOWN) {
		const char *file = strrchr(f->file, '/');

		snprintf(buf, size, "%.*s  %s:%llu", (int)name_length(f->fn), f->fn,
			 file ? file + 1 : f->file, (unsigned long long)f->line);
	} else if (f->fn) {
		const char *file = path ? strrchr(path, '/') : NULL;

		snprintf(buf, size, "%.*s  %s", (int)name_length(f->fn), f->fn,
			 file ? file + 1 : "");
	} else if (path) {
		const char *file = strrchr(path, '/');

		snprintf(buf, size, "%s+0x%llx", file ? file + 1 : path,
			 (unsigned long long)(f->addr - base));
	} else {
		snprintf(buf, size, "0x%llx", (unsigned long long)f->addr);
	}
}
