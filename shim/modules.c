/* SPDX-License-Identifier: MIT */
#include "shim/modules.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>

#include "shim/base/fmt.h"
#include "shim/base/hash.h"
#include "shim/base/ledger_format.h"
#include "shim/ledger.h"
#include "shim/os/clock.h"
#include "shim/os/lock.h"
#include "shim/os/maps.h"
#include "shim/os/proc.h"
#include "shim/os/sys.h"
#include "shim/routing.h"

#define NOTE_BYTES_MAX 4096u

/* What is compared with; the record itself is for readers. */
struct known {
	uintptr_t begin, end;
	const void *link_map;
	uint64_t id; /* hash of its build id */
	bool gone;
};

static struct tm_lock lock = TM_LOCK_INIT(TM_RANK_SITES);
static struct known known[TM_LEDGER_MODULES]; /* [lock] */
static uint32_t count;                        /* [lock] */

static const Elf64_Phdr *headers_of(uintptr_t begin, unsigned *ret_count)
{
	const Elf64_Ehdr *e = (const Elf64_Ehdr *)begin;

	if (!tm_unwind_readable(begin, sizeof(*e)) ||
	    __builtin_memcmp(e->e_ident, ELFMAG, SELFMAG) != 0 || e->e_phnum > 128 ||
	    e->e_phentsize != sizeof(Elf64_Phdr) || e->e_phoff > TM_PAGE_BYTES * 4 ||
	    !tm_unwind_readable(begin + e->e_phoff, e->e_phnum * sizeof(Elf64_Phdr)))
		return NULL;
	*ret_count = e->e_phnum;
	return (const Elf64_Phdr *)(begin + e->e_phoff);
}

static uintptr_t bias_of(uintptr_t begin, const Elf64_Phdr *p, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (p[i].p_type == PT_LOAD && p[i].p_offset == 0)
			return begin - p[i].p_vaddr;
	return begin;
}

static uint32_t build_id_in(uintptr_t at, size_t bytes, uint8_t *id, size_t size)
{
	if (bytes > NOTE_BYTES_MAX || !tm_unwind_readable(at, bytes))
		return 0;
	while (bytes >= sizeof(Elf64_Nhdr)) {
		const Elf64_Nhdr *n = (const Elf64_Nhdr *)at;
		size_t name = (n->n_namesz + 3u) & ~3u, all = sizeof(*n) + name;

		if (n->n_namesz > bytes || n->n_descsz > bytes || all > bytes)
			return 0;
		if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4 &&
		    __builtin_memcmp((const char *)at + sizeof(*n), "GNU", 4) == 0) {
			size_t length = n->n_descsz < size ? n->n_descsz : size;

			if (all + length > bytes)
				return 0;
			__builtin_memcpy(id, (const char *)at + all, length);
			return (uint32_t)length;
		}
		all += (n->n_descsz + 3u) & ~3u;
		if (all > bytes)
			return 0;
		at += all;
		bytes -= all;
	}
	return 0;
}

uint32_t tm_modules_build_id(uintptr_t begin, uint8_t *id, size_t size)
{
	unsigned n;
	const Elf64_Phdr *p = headers_of(begin, &n);
	uint32_t length = 0;

	if (p == NULL)
		return 0;
	for (unsigned i = 0; i < n && length == 0; i++)
		if (p[i].p_type == PT_NOTE)
			length = build_id_in(bias_of(begin, p, n) + p[i].p_vaddr, p[i].p_memsz, id,
					     size);
	return length;
}

static void write_path(struct tm_ledger_module *m, const struct tm_unwind_object *object)
{
	const struct link_map *map = object->link_map;
	struct tm_maps_range range;

	if (map == NULL) {
		tm_maps_object(object->begin, &range, m->path, sizeof(m->path));
	} else if (map->l_name != NULL && map->l_name[0] != '\0') {
		tm_fmt(m->path, sizeof(m->path), "%s", map->l_name);
	} else {
		/* The program itself has no name there. */
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
	const Elf64_Phdr *p = headers_of(begin, &n);

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
	/* No lock: what the policies know of call sites there is void. */
	tm_routing_forget(known[index].begin, known[index].end);
	if (m == NULL)
		return;
	m->unload_epoch = tm_ledger_header()->epoch;
	m->unloaded_ms = tm_clock_ms();
}

static uint64_t id_hash(uintptr_t begin)
{
	uint8_t id[32];

	return tm_hash_bytes(id, tm_modules_build_id(begin, id, sizeof(id)));
}

/* [lock] */
static void add(const struct tm_unwind_object *object)
{
	struct tm_ledger_header *header = tm_ledger_header();
	struct tm_ledger_module *m = count < TM_LEDGER_MODULES ? record_at(count) : NULL;

	if (m == NULL) {
		header->modules_lost++;
		return;
	}
	known[count] = (struct known){object->begin, object->end, object->link_map,
				      id_hash(object->begin), false};
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
		    k->link_map == object->link_map && k->id == id_hash(object->begin))
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
