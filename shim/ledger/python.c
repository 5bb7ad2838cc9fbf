/* SPDX-License-Identifier: MIT */
#include "shim/ledger/python.h"

#include <errno.h>
#include <string.h>

#include "shim/alloc.h"
#include "shim/base/hash.h"
#include "shim/base/ledger_format.h"
#include "shim/boot.h"
#include "shim/elf.h"
#include "shim/heap/account.h"
#include "shim/heap/size_class.h"
#include "shim/ledger/ledger.h"
#include "shim/os/mem.h"
#include "shim/os/msg.h"
#include "shim/unwind/unwind.h"

/* Words that stand for sites: no program's code is there. */
#define SITE_BIT (UINT64_C(1) << 47)
#define SITE_BITS 15
#define SITES (1u << SITE_BITS)
#define PROBES 16u
/*
 * A bare interpreter allocates at 3,000 lines before it runs a program's first, most of them once; a
 * heap tells 4,095 sites apart. A line becomes a site at its 33rd allocation, later ones at more; a page
 * counts as one more.
 */
#define SITES_MAX 3072u
#define SEEN_MIN 32u
#define SEEN_STEP (SITES_MAX / 4)
/* Functions of the ledger, by their texts. */
#define CODE_BITS 13
#define CODES (1u << CODE_BITS)
#define TEXT_MAX 240u

/* Include/internal/pycore_frame.h and friends: bytes from the start of the structures. */
struct layout {
	unsigned minor;
	uint8_t tstate_frames; /* of PyThreadState: cframe (see below), or current_frame */
	uint8_t cframe_frame;  /* of _PyCFrame: current_frame; UINT8_MAX: there is none between */
	uint8_t frame_code, frame_previous, frame_instr;
	uint8_t frame_entry; /* is_entry; 0: frames owned by the C stack stand between instead */
	uint8_t frame_owner;
	uint8_t code_line, code_file, code_name, code_bytes;
	uint8_t ascii_bytes, compact_bytes; /* size of a text's head */
};
#define OWNED_BY_C_STACK 3

static const struct layout layouts[] = {
	{11, 56, 8, 32, 48, 56, 68, 69, 72, 112, 128, 184, 48, 72},
	{12, 56, 0, 0, 8, 56, 0, 70, 68, 112, 128, 192, 40, 56},
	{13, 72, UINT8_MAX, 0, 8, 56, 0, 70, 68, 112, 128, 200, 40, 56},
};

struct site {
	uint64_t hash; /* [atomic] 0: free */
	uint64_t return_address;
};

/* [const after boot, where nothing else is said] */
static struct {
	const struct layout *layout; /* NULL: off */
	const char *(*thread_state)(void);
	int (*line_of)(const void *code, int offset);
	uintptr_t code_type, text_type;
	uintptr_t eval_begin, eval_end;
	struct site *sites;
	uint16_t *seen;    /* [racy] allocations by hash, until it is a site */
	uint32_t admitted; /* [atomic] sites */
	uint32_t *codes;   /* [atomic] offset + 1 of a record */
} python TM_AT_START_DATA;

/* --- frames ----------------------------------------------------------------------------------- */

static uintptr_t word(uintptr_t at, unsigned offset)
{
	uintptr_t value;

	__builtin_memcpy(&value, (const char *)at + offset, sizeof(value));
	return value;
}

static uint32_t half(uintptr_t at, unsigned offset)
{
	uint32_t value;

	__builtin_memcpy(&value, (const char *)at + offset, sizeof(value));
	return value;
}

/* The thread's newest interpreter frame; 0: it runs no Python. */
static uintptr_t newest_frame(void)
{
	const struct layout *l = python.layout;
	uintptr_t state = (uintptr_t)python.thread_state(), frames;

	if (state == 0)
		return 0;
	frames = word(state, l->tstate_frames);
	if (frames != 0 && l->cframe_frame != UINT8_MAX)
		frames = word(frames, l->cframe_frame);
	return frames;
}

/* From this frame on the next that runs code; 0: none. */
static uintptr_t running_frame(uintptr_t frame)
{
	const struct layout *l = python.layout;

	while (frame != 0) {
		uintptr_t code = word(frame, l->frame_code);

		if (code != 0 && word(code, 8) == python.code_type)
			break;
		frame = word(frame, l->frame_previous);
	}
	return frame;
}

/* --- sites ------------------------------------------------------------------------------------ */

static uint64_t site_word(size_t slot)
{
	return SITE_BIT | (uint64_t)slot << 4;
}

bool tm_python_is_site(uintptr_t site)
{
	return (site & SITE_BIT) != 0 && python.layout != NULL;
}

uintptr_t tm_python_return_address(uintptr_t site)
{
	return tm_python_is_site(site) ? python.sites[(site >> 4) % SITES].return_address : site;
}

/* Counts a hash that is no site yet; true: it becomes one now. */
static bool is_seen_often(uint64_t hash, size_t bytes)
{
	uint16_t *seen = &python.seen[hash >> (64 - SITE_BITS)];
	uint32_t admitted = __atomic_load_n(&python.admitted, __ATOMIC_RELAXED);

	if (admitted >= SITES_MAX)
		return false;
	size_t now = *seen + bytes / TM_PAGE_BYTES;
	if (now < SEEN_MIN << admitted / SEEN_STEP) {
		*seen = (uint16_t)(now + 1);
		return false;
	}
	__atomic_fetch_add(&python.admitted, 1, __ATOMIC_RELAXED);
	return true;
}

/* The word for a C call and a Python line; 0: it is not told apart. */
static uintptr_t intern(uintptr_t return_address, uint64_t hash, size_t bytes)
{
	size_t slot = hash >> (64 - SITE_BITS);

	hash |= 1;
	for (unsigned n = 0; n < PROBES; n++, slot = (slot + 1) % SITES) {
		struct site *s = &python.sites[slot];
		uint64_t seen = __atomic_load_n(&s->hash, __ATOMIC_ACQUIRE);

		if (seen == hash)
			return site_word(slot);
		if (seen != 0)
			continue;
		if (!is_seen_often(hash, bytes))
			return 0;
		/* A thread that looks between these two finds no C call: it captures a shorter stack. */
		if (__atomic_compare_exchange_n(&s->hash, &seen, hash, false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE)) {
			__atomic_store_n(&s->return_address, return_address, __ATOMIC_RELEASE);
			return site_word(slot);
		}
		if (seen == hash)
			return site_word(slot);
	}
	return 0;
}

static struct tm_site with_line(struct tm_site site, size_t bytes)
{
	const struct layout *l = python.layout;
	uintptr_t frame = running_frame(newest_frame());

	if (frame == 0)
		return site;
	uintptr_t code = word(frame, l->frame_code);
	/* Code that took the place of other code differs in its name or line. */
	uint64_t hash = tm_hash_add(site.return_address, word(frame, l->frame_instr));
	hash = tm_hash_add(hash, code ^ (uint64_t)half(code, l->code_line) << 48);
	hash = tm_hash_add(hash, word(code, l->code_file) ^ word(code, l->code_name) << 8);
	uintptr_t found = intern(site.return_address, hash, bytes);
	if (found != 0)
		site.return_address = found;
	return site;
}

struct tm_site tm_python_site(struct tm_site site, size_t bytes)
{
	return python.layout != NULL ? with_line(site, bytes) : site;
}

/* --- functions in the ledger ------------------------------------------------------------------ */

static unsigned put_utf8(char *out, uint32_t c)
{
	if (c < 0x80) {
		out[0] = (char)(c < 0x20 || c == 0x7f ? '?' : c);
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 63));
		out[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	out[0] = (char)(0xf0 | (c >> 18 & 7));
	out[1] = (char)(0x80 | (c >> 12 & 63));
	out[2] = (char)(0x80 | (c >> 6 & 63));
	out[3] = (char)(0x80 | (c & 63));
	return 4;
}

/* A Python text as UTF-8; of a long one the end, which tells more of a path. Bytes stored. */
static unsigned copy_text(char *out, uintptr_t text)
{
	const struct layout *l = python.layout;
	unsigned n = 0, kind, width;

	if (text == 0 || !tm_unwind_readable(text, l->compact_bytes) ||
	    word(text, 8) != python.text_type)
		return 0;
	uintptr_t length = word(text, 16), i = 0;
	uint32_t state = half(text, 32);
	kind = state >> 2 & 7;
	if ((state >> 5 & 1) == 0 || (kind != 1 && kind != 2 && kind != 4))
		return 0;
	width = kind;
	const char *at = (const char *)text + (state >> 6 & 1 ? l->ascii_bytes : l->compact_bytes);
	if (length > TEXT_MAX / width)
		i = length - TEXT_MAX / width;
	if (!tm_unwind_readable((uintptr_t)at + i * width, (length - i) * width))
		return 0;
	for (; i < length && n + 4 <= TEXT_MAX; i++) {
		uint32_t c = 0;

		__builtin_memcpy(&c, at + i * width, width);
		n += put_utf8(out + n, c);
	}
	return n;
}

struct described {
	struct tm_ledger_python head;
	char text[2 * TEXT_MAX];
};

static struct tm_ledger_python *record_at(uint32_t offset, size_t bytes)
{
	return tm_ledger_area(TM_LEDGER_PYTHON_AT + offset, bytes);
}

static bool take_record(size_t bytes, uint32_t *ret_at)
{
	struct tm_ledger_header *header = tm_ledger_header();
	uint32_t at = __atomic_load_n(&header->python_bytes, __ATOMIC_RELAXED);

	do {
		if (bytes > TM_LEDGER_PYTHON_BYTES - at)
			return false;
	} while (!__atomic_compare_exchange_n(&header->python_bytes, &at, at + (uint32_t)bytes,
					      true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	*ret_at = at;
	return true;
}

/* Where the ledger has this function; false: no room. Two threads may write it twice. */
static bool find_code(const struct described *d, uint32_t *ret_at)
{
	size_t text = d->head.file_bytes + (size_t)d->head.name_bytes;
	size_t bytes = (sizeof(d->head) + text + 7) & ~(size_t)7;
	size_t slot = tm_hash_bytes(d->text, text) + d->head.line;

	for (unsigned n = 0; n < PROBES; n++) {
		uint32_t *place = &python.codes[(slot + n) % CODES];
		uint32_t at = __atomic_load_n(place, __ATOMIC_ACQUIRE);
		struct tm_ledger_python *r = at ? record_at(at - 1, bytes) : NULL;

		if (at == 0) {
			if (!take_record(bytes, ret_at) || (r = record_at(*ret_at, bytes)) == NULL)
				return false;
			__builtin_memcpy(r + 1, d->text, text);
			*r = d->head;
			__atomic_store_n(place, *ret_at + 1, __ATOMIC_RELEASE);
			return true;
		}
		if (r != NULL && r->line == d->head.line && r->file_bytes == d->head.file_bytes &&
		    r->name_bytes == d->head.name_bytes && memcmp(r + 1, d->text, text) == 0) {
			*ret_at = at - 1;
			return true;
		}
	}
	return false;
}

/* The frame's word; 0: it cannot be told. */
static uint64_t describe(uintptr_t frame, struct described *d)
{
	const struct layout *l = python.layout;
	uintptr_t code = word(frame, l->frame_code);
	uintptr_t instr = word(frame, l->frame_instr);
	uint32_t at;

	d->head.line = half(code, l->code_line);
	d->head.file_bytes = (uint16_t)copy_text(d->text, word(code, l->code_file));
	d->head.name_bytes =
		(uint16_t)copy_text(d->text + d->head.file_bytes, word(code, l->code_name));
	if (d->head.file_bytes == 0 || !find_code(d, &at))
		return 0;
	/* Before its first instruction a frame is at the line where the function begins. */
	int line = (int)d->head.line;
	if (instr >= code + l->code_bytes && instr - code < INT32_MAX) {
		int found = python.line_of((const void *)code, (int)(instr - code - l->code_bytes));
		if (found > 0)
			line = found;
	}
	return TM_LEDGER_PYTHON_FRAME | (uint64_t)((uint32_t)line & 0x3fffffff) << 32 | at;
}

unsigned tm_python_frames(uint64_t *frames, unsigned room)
{
	const struct layout *l = python.layout;
	struct described *d =
		tm_mem_map(sizeof(*d)); /* who allocates may have little stack (H26) */
	uintptr_t frame = newest_frame();
	unsigned count = 0;

	for (; d != NULL && frame != 0 && count < room; frame = word(frame, l->frame_previous)) {
		uintptr_t code = word(frame, l->frame_code);
		unsigned char owner, entry = 0;

		__builtin_memcpy(&owner, (const char *)frame + l->frame_owner, 1);
		if (l->frame_entry != 0)
			__builtin_memcpy(&entry, (const char *)frame + l->frame_entry, 1);
		else if (owner == OWNED_BY_C_STACK && count > 0)
			frames[count - 1] |= TM_LEDGER_PYTHON_ENTRY;
		if (code == 0 || word(code, 8) != python.code_type ||
		    (l->frame_entry == 0 && owner == OWNED_BY_C_STACK))
			continue;
		frames[count] = describe(frame, d);
		if (frames[count] == 0)
			break;
		if (entry)
			frames[count] |= TM_LEDGER_PYTHON_ENTRY;
		count++;
	}
	if (d != NULL)
		(void)tm_mem_unmap_raw(d, sizeof(*d));
	return count;
}

void tm_python_describe(struct tm_ledger_header *header)
{
	header->python_begin = python.eval_begin;
	header->python_end = python.eval_end;
	if (python.layout != NULL)
		header->features |= TM_LEDGER_HAS_PYTHON;
}

void tm_python_fork_child(void)
{
	for (unsigned i = 0; python.layout != NULL && i < CODES; i++)
		if (python.codes[i] != 0)
			python.codes[i] = 0;
}

/* --- what takes the place of the usual functions ------------------------------------------------ */

/* Rows without height are as fast, once one looks for them (alloc.c). */
static void *python_malloc(size_t size)
{
	return tm_alloc_any(size, with_line(TM_SITE_HERE, size));
}

static void *python_calloc(size_t n, size_t size)
{
	size_t bytes;

	if (!tm_alloc_product(n, size, &bytes))
		return NULL;
	struct tm_site site = with_line(TM_SITE_HERE, bytes);
	if (bytes > TM_SLOT_MAX)
		return tm_alloc_zero_slow(bytes, site);
	void *p = tm_alloc_any(bytes, site);
	return p != NULL ? memset(p, 0, bytes) : NULL;
}

static void *python_realloc(void *p, size_t size)
{
	return tm_alloc_realloc_slow(p, size, with_line(TM_SITE_HERE, size));
}

/* --- boot ------------------------------------------------------------------------------------- */

static const struct layout *find_layout(unsigned long version)
{
	for (size_t i = 0; i < TM_ARRAY_LEN(layouts); i++) {
		if (version >> 24 == 3 && (version >> 16 & 0xff) == layouts[i].minor)
			return &layouts[i];
	}
	return NULL;
}

static bool find_interpreter(void)
{
	uintptr_t state = tm_elf_first("PyGILState_GetThisThreadState");
	uintptr_t line = tm_elf_first("PyCode_Addr2Line");
	uintptr_t version = tm_elf_first("Py_Version");

	if (state == 0 || line == 0)
		return false; /* no Python: a shell on the way to it */
	if (version != 0)
		python.layout = find_layout(word(version, 0));
	if (python.layout == NULL) {
		tm_msg(TM_MSG_WARN, "TIERMALLOC_PYTHON='on' needs CPython 3.11 to 3.13: "
				    "call sites have no Python lines");
		return false;
	}
	TM_ELF_FUNCTION(state, &python.thread_state);
	TM_ELF_FUNCTION(line, &python.line_of);
	python.code_type = tm_elf_first("PyCode_Type");
	python.text_type = tm_elf_first("PyUnicode_Type");
	python.eval_begin = tm_elf_first("_PyEval_EvalFrameDefault");
	python.eval_end = python.eval_begin + tm_elf_first_size("_PyEval_EvalFrameDefault");
	return python.code_type != 0 && python.text_type != 0;
}

TM_AT_START_CODE void tm_python_init(void)
{
	const struct tm_options *o = &tm_root.options;

	if (o->python == TM_PYTHON_OFF || o->ledger == TM_LEDGER_OFF)
		return;
	if (find_interpreter()) {
		python.sites = tm_mem_map(SITES * sizeof(*python.sites));
		python.codes = tm_mem_map(CODES * sizeof(*python.codes));
		python.seen = tm_mem_map(SITES * sizeof(*python.seen));
	}
	if (python.sites == NULL || python.codes == NULL || python.seen == NULL)
		python.layout = NULL;
}

TM_AT_START_CODE void tm_python_ops(struct tm_ops *ops)
{
	/* A larger alignment, a trace, births have functions of their own. */
	if (python.layout == NULL || ops->malloc != tm_alloc_malloc)
		return;
	ops->malloc = python_malloc;
	ops->calloc = python_calloc;
	ops->realloc = python_realloc;
}
