/* SPDX-License-Identifier: MIT */
#include "shim/ledger/modules.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>

#include "shim/base/bits.h"
#include "shim/base/fmt.h"
#include "shim/base/hash.h"
#include "shim/base/ledger_format.h"
#include "shim/ledger/ledger.h"
#include "shim/os/clock.h"
#include "shim/os/lock.h"
#include "shim/os/maps.h"
#include "shim/os/mem.h"
#include "shim/os/proc.h"
#include "shim/os/sys.h"
#include "shim/routing.h"

#define NOTE_BYTES_MAX 4096u
#define BUILD_ID_BYTES_MAX 32u

/* Location of an object's build id: found once, compared whenever the object is seen again. */
struct build_id {
	uintptr_t at;
	uint32_t bytes; /* 0: it has none */
	uint64_t hash;
};

/* Our own copy for comparisons; the record in the ledger is only for readers. */
struct known {
	uintptr_t begin, end;
	const void *link_map;
	struct build_id id;
	bool gone;
};

static struct tm_lock lock = TM_LOCK_INIT(TM_RANK_SITES);
static struct known *known; /* [lock] TM_LEDGER_MODULES of them, mapped for the first one */
static uint32_t count;      /* [lock] */

static uintptr_t bias_of(uintptr_t begin, const Elf64_Phdr *p, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (p[i].p_type == PT_LOAD && p[i].p_offset == 0)
			return begin - p[i].p_vaddr;
	return begin;
}

/* Finds the build id in a note segment. */
static bool find_in_notes(uintptr_t at, size_t bytes, struct build_id *ret)
{
	if (bytes > NOTE_BYTES_MAX || !tm_unwind_readable(at, bytes))
		return false;
	while (bytes >= sizeof(Elf64_Nhdr)) {
		const Elf64_Nhdr *n = (const Elf64_Nhdr *)at;
		size_t name = (n->n_namesz + 3u) & ~3u, all = sizeof(*n) + name;

		if (n->n_namesz > bytes || n->n_descsz > bytes || all > bytes)
			return false;
		if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4 &&
		    __builtin_memcmp((const char *)at + sizeof(*n), "GNU", 4) == 0) {
			ret->at = at + all;
			ret->bytes = (uint32_t)tm_bits_min(n->n_descsz, BUILD_ID_BYTES_MAX);
			return all + ret->bytes <= bytes && ret->bytes != 0;
		}
		all += (n->n_descsz + 3u) & ~3u;
		if (all > bytes)
			return false;
		at += all;
		bytes -= all;
	}
	return false;
}

static struct build_id find_build_id(uintptr_t begin)
{
	struct build_id id = {0, 0, 0};
	unsigned n = 0;
	const Elf64_Phdr *p = tm_unwind_headers(begin, &n);
	bool found = false;

	for (unsigned i = 0; i < n && !found; i++)
		found = p[i].p_type == PT_NOTE &&
			find_in_notes(bias_of(begin, p, n) + p[i].p_vaddr, p[i].p_memsz, &id);
	if (!found)
		return (struct build_id){0, 0, 0};
	id.hash = tm_hash_bytes((const void *)id.at, id.bytes);
	return id;
}

/* Whether the object mapped there now is still the known one: compares the build id. */
static bool has_build_id(uintptr_t begin, const struct build_id *id)
{
	if (id->bytes == 0)
		return find_build_id(begin).bytes == 0;
	return tm_unwind_readable(id->at, id->bytes) &&
	       tm_hash_bytes((const void *)id->at, id->bytes) == id->hash;
}

uint32_t tm_modules_build_id(uintptr_t begin, uint8_t *id, size_t size)
{
	struct build_id found = find_build_id(begin);
	size_t length = tm_bits_min(found.bytes, size);

	if (length != 0)
		__builtin_memcpy(id, (const void *)found.at, length);
	return (uint32_t)length;
}

static void write_path(struct tm_ledger_module *m, const struct tm_unwind_object *object)
{
	const struct link_map *map = object->link_map;
	struct tm_maps_range range;
	bool is_named = map != NULL && map->l_name != NULL && map->l_name[0] != '\0';

	/* A plugin may be opened by a relative name, which others cannot find. */
	if ((map == NULL || (is_named && map->l_name[0] != '/' && tm_proc_may_open())) &&
	    tm_maps_object(object->begin, &range, m->path, sizeof(m->path)) == 0) {
		;
	} else if (is_named) {
		tm_fmt(m->path, sizeof(m->path), "%s", map->l_name);
	} else if (map != NULL) {
		/* the main program's link_map has an empty name */
		long n = tm_proc_may_open() ? tm_sys_readlinkat(AT_FDCWD, "/proc/self/exe", m->path,
								sizeof(m->path) - 1)
					    : 0;

		m->path[n > 0 ? n : 0] = '\0';
	}
	while (m->path_bytes < sizeof(m->path) && m->path[m->path_bytes] != '\0')
		m->path_bytes++;
}

/* [lock] */
static void write_record(struct tm_ledger_module *m, const struct tm_unwind_object *object)
{
	struct tm_ledger_header *header = tm_ledger_header();
	const struct link_map *map = object->link_map;
	uintptr_t begin = object->begin;
	unsigned n = 0;
	const Elf64_Phdr *p = tm_unwind_headers(begin, &n);

	m->base = map != NULL ? map->l_addr : p != NULL ? bias_of(begin, p, n) : begin;
	m->begin = begin;
	m->loaded_ms = tm_clock_ms();
	m->load_epoch = header->epoch;
	m->build_id_bytes = tm_modules_build_id(begin, m->build_id, sizeof(m->build_id));
	write_path(m, object);
	__atomic_store_n(&m->end, object->end, __ATOMIC_RELEASE);
}

static struct tm_ledger_module *record_at(uint32_t index)
{
	return tm_ledger_area(TM_LEDGER_MODULES_AT + index * sizeof(struct tm_ledger_module),
			      sizeof(struct tm_ledger_module));
}

/* [lock] */
static void mark_gone(uint32_t index)
{
	struct tm_ledger_module *m = record_at(index);

	known[index].gone = true;
	/* without the lock: makes the policies drop their call sites in the range */
	tm_routing_forget(known[index].begin, known[index].end);
	if (m == NULL)
		return;
	m->unload_epoch = tm_ledger_header()->epoch;
	m->unloaded_ms = tm_clock_ms();
}

/* [lock] */
static void add(const struct tm_unwind_object *object)
{
	struct tm_ledger_header *header = tm_ledger_header();
	struct tm_ledger_module *m = count < TM_LEDGER_MODULES ? record_at(count) : NULL;

	if (known == NULL)
		known = tm_mem_map(TM_LEDGER_MODULES * sizeof(*known));
	if (m == NULL || known == NULL) {
		header->modules_lost++;
		return;
	}
	known[count] = (struct known){object->begin, object->end, object->link_map,
				      find_build_id(object->begin), false};
	write_record(m, object);
	__atomic_store_n(&header->modules, ++count, __ATOMIC_RELEASE);
}

void tm_modules_seen(uintptr_t pc, const struct tm_unwind_object *object)
{
	bool have = false;

	(void)pc;
	if (tm_ledger_header() == NULL)
		return;
	tm_lock_acquire(&lock);
	for (uint32_t i = 0; i < count; i++) {
		struct known *k = &known[i];

		if (k->gone || k->end <= object->begin || k->begin >= object->end)
			continue;
		if (k->begin == object->begin && k->end == object->end &&
		    k->link_map == object->link_map && has_build_id(object->begin, &k->id))
			have = true;
		else
			mark_gone(i);
	}
	if (!have)
		add(object);
	tm_lock_release(&lock);
}

void tm_modules_sweep(void)
{
	struct tm_unwind_object object;

	if (tm_ledger_header() == NULL)
		return;
	tm_lock_acquire(&lock);
	for (uint32_t i = 0; i < count; i++) {
		const struct known *k = &known[i];

		if (!k->gone && (!tm_unwind_object(k->begin, &object) || object.begin != k->begin ||
				 object.link_map != k->link_map))
			mark_gone(i);
	}
	tm_lock_release(&lock);
}

TM_AT_START_CODE void tm_modules_init(void)
{
	tm_lock_register(&lock);
}

void tm_modules_fork_child(void)
{
	count = 0;
	tm_unwind_forget();
}
