/* SPDX-License-Identifier: MIT */
#include "shim/elf.h"

#include <elf.h>
#include <link.h>
#include <stdatomic.h>

/* An object's tables for a lookup. The loader doesn't relocate the pointers of the vDSO. */
struct tables {
	const ElfW(Sym) * symbols;
	const char *strings;
	const uint32_t *gnu_hash;
	const uint32_t *sysv_hash;
	const uint16_t *versions;
};

/* Weak, so that the loader itself does not become one of our NEEDED libraries. */
#pragma weak _r_debug

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

static const void *dynamic_pointer(uintptr_t base, ElfW(Addr) value)
{
	return (const void *)(value < base ? value + base : value);
}

static void read_tables(const struct tm_elf_object *object, struct tables *ret)
{
	const ElfW(Dyn) * d;
	*ret = (struct tables){0};
	for (d = object->dynamic; d->d_tag != DT_NULL; d++) {
		const void *p = dynamic_pointer(object->base, d->d_un.d_ptr);
		switch (d->d_tag) {
		case DT_SYMTAB: ret->symbols = p; break;
		case DT_STRTAB: ret->strings = p; break;
		case DT_GNU_HASH: ret->gnu_hash = p; break;
		case DT_HASH: ret->sysv_hash = p; break;
		case DT_VERSYM: ret->versions = p; break;
		default: break;
		}
	}
}

/* libc's strcmp is an indirect function and may not be callable yet. */
static bool same(const char *a, const char *b)
{
	while (*a != '\0' && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

static TM_AT_START_CODE bool defines(const struct tables *t, uint32_t index, const char *name)
{
	const ElfW(Sym) *s = &t->symbols[index];
	unsigned type = ELF64_ST_TYPE(s->st_info);
	if (s->st_shndx == SHN_UNDEF || s->st_value == 0)
		return false;
	if (type != STT_FUNC && type != STT_OBJECT && type != STT_NOTYPE)
		return false;
	return same(t->strings + s->st_name, name);
}

/* Walks one hash bucket; a hidden version is used only if there is no default version. */
static bool better(const struct tables *t, uint32_t index, uint32_t *found)
{
	*found = index;
	return t->versions == NULL || (t->versions[index] & 0x8000u) == 0;
}

static uint32_t gnu_hash_of(const char *name)
{
	uint32_t h = 5381;
	for (; *name != '\0'; name++)
		h = h * 33 + (unsigned char)*name;
	return h;
}

static uint32_t find_gnu(const struct tables *t, const char *name)
{
	const uint32_t *table = t->gnu_hash;
	uint32_t buckets = table[0], first = table[1], words = table[2], shift = table[3];
	const uint64_t *bloom = (const uint64_t *)(const void *)(table + 4);
	const uint32_t *bucket = (const uint32_t *)(const void *)(bloom + words);
	const uint32_t *chain = bucket + buckets;
	uint32_t h = gnu_hash_of(name), found = 0, i;
	if (buckets == 0 || words == 0)
		return 0;
	uint64_t word = bloom[(h / 64) & (words - 1)];
	if (((word >> (h % 64)) & (word >> ((h >> shift) % 64)) & 1) == 0)
		return 0;
	i = bucket[h % buckets];
	if (i < first)
		return 0;
	for (;; i++) {
		uint32_t c = chain[i - first];
		if ((c | 1) == (h | 1) && defines(t, i, name) && better(t, i, &found))
			return i;
		if (c & 1)
			return found;
	}
}

static uint32_t find_sysv(const struct tables *t, const char *name)
{
	const uint32_t *table = t->sysv_hash;
	uint32_t buckets = table[0], found = 0, h = 0, i;
	const uint32_t *bucket = table + 2, *chain = bucket + buckets;
	const char *c;
	for (c = name; *c != '\0'; c++) {
		h = (h << 4) + (unsigned char)*c;
		h = (h ^ ((h & 0xf0000000u) >> 24)) & 0x0fffffffu;
	}
	if (buckets == 0)
		return 0;
	for (i = bucket[h % buckets]; i != STN_UNDEF; i = chain[i])
		if (defines(t, i, name) && better(t, i, &found))
			return i;
	return found;
}

static TM_AT_START_CODE uintptr_t find_sized(const struct tm_elf_object *object, const char *name,
					     size_t *ret_size)
{
	struct tables t;
	uint32_t i = 0;
	read_tables(object, &t);
	if (t.symbols == NULL || t.strings == NULL)
		return 0;
	if (t.gnu_hash != NULL)
		i = find_gnu(&t, name);
	else if (t.sysv_hash != NULL)
		i = find_sysv(&t, name);
	if (i == 0)
		return 0;
	*ret_size = t.symbols[i].st_size;
	return object->base + t.symbols[i].st_value;
}

TM_AT_START_CODE uintptr_t tm_elf_find(const struct tm_elf_object *object, const char *name)
{
	size_t size;
	return find_sized(object, name, &size);
}

/*
 * --- by the loader's own list, without a lock --------------------------------------------------
 */

static const struct link_map *first_map(void)
{
	const struct r_debug *debug = &_r_debug;
	return debug == NULL ? NULL : debug->r_map;
}

static struct tm_elf_object object_of(const struct link_map *map)
{
	return (struct tm_elf_object){map->l_addr, map->l_ld};
}

static uintptr_t find_from(const struct link_map *map, const char *name, struct tm_elf_object *ret)
{
	for (; map != NULL; map = map->l_next) {
		struct tm_elf_object object = object_of(map);
		uintptr_t address = map->l_ld == NULL ? 0 : tm_elf_find(&object, name);
		if (address != 0) {
			*ret = object;
			return address;
		}
	}
	return 0;
}

static const struct link_map *own_map(void)
{
	const struct link_map *map = first_map();
	while (map != NULL && map->l_ld != (const void *)_DYNAMIC)
		map = map->l_next;
	return map;
}

/*
 * --- by dl_iterate_phdr, under the loader's lock ------------------------------------------------
 */

/* A walk over the objects in load order. */
struct walk {
	const char *name;
	uintptr_t after; /* search only after the object containing this; 0: search all */
	uintptr_t found;
	struct tm_elf_object object;
	enum { FROM_START, BEHIND_CALLER, BUT_OURS, CONTAINING, NAMED, NAMED_LIKE } rule;
};

static bool contains(const struct dl_phdr_info *info, uintptr_t address)
{
	ElfW(Half) i;
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		if (h->p_type == PT_LOAD && address - (info->dlpi_addr + h->p_vaddr) < h->p_memsz)
			return true;
	}
	return false;
}

static const void *dynamic_of(const struct dl_phdr_info *info)
{
	ElfW(Half) i;
	for (i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			return (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	return NULL;
}

/* The n-th text of a tag; NULL: there are fewer. */
static const char *text_of(const struct tm_elf_object *object, ElfW(Sxword) tag, unsigned n)
{
	const char *strings = NULL;
	const ElfW(Dyn) * d;
	for (d = object->dynamic; d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_STRTAB)
			strings = dynamic_pointer(object->base, d->d_un.d_ptr);
	for (d = object->dynamic; strings != NULL && d->d_tag != DT_NULL; d++)
		if (d->d_tag == tag && n-- == 0)
			return strings + d->d_un.d_val;
	return NULL;
}

/* The whole name, or its beginning alone. */
static bool has_name(const char *soname, const char *name, int like)
{
	if (soname == NULL || !like)
		return soname != NULL && same(soname, name);
	while (*name != '\0' && *soname == *name) {
		soname++;
		name++;
	}
	return *name == '\0';
}

static int visit(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	struct walk *w = arg;
	struct tm_elf_object object = {info->dlpi_addr, dynamic_of(info)};
	(void)bytes;
	if (w->rule >= CONTAINING) {
		if (object.dynamic == NULL)
			return 0;
		w->found = w->rule == CONTAINING ? contains(info, w->after)
						 : has_name(text_of(&object, DT_SONAME, 0), w->name,
							    w->rule == NAMED_LIKE);
		w->object = object;
		return w->found != 0;
	}
	if (w->rule == BEHIND_CALLER) {
		if (contains(info, w->after))
			w->rule = FROM_START;
		return 0;
	}
	if (object.dynamic == NULL ||
	    (w->rule == BUT_OURS && object.dynamic == (const void *)_DYNAMIC))
		return 0;
	w->found = tm_elf_find(&object, w->name);
	w->object = object;
	return w->found != 0;
}

/*
 * libc's own dl_iterate_phdr: an interposed one, of the program or a sanitizer, may not be
 * initialised yet, or may be about to look up the real one by dlsym.
 */
static void each_object(struct walk *w)
{
	int (*iterate)(int (*)(struct dl_phdr_info *, size_t, void *), void *) = dl_iterate_phdr;
	struct tm_elf_object libc;
	if (tm_elf_libc(&libc))
		TM_ELF_FUNCTION(tm_elf_find(&libc, "dl_iterate_phdr"), &iterate);
	if (iterate != NULL)
		iterate(visit, w);
}

/*
 * --- what others ask ----------------------------------------------------------------------------
 */

/* For loaders without a list known to us, as musl's, whose dl_iterate_phdr does not allocate. */
static uintptr_t walk_for(struct walk w)
{
	each_object(&w);
	return w.found;
}

TM_AT_START_CODE uintptr_t tm_elf_next(const char *name)
{
	const struct link_map *own = own_map();
	struct tm_elf_object ignored;
	if (own == NULL)
		return walk_for((struct walk){
			.name = name, .after = (uintptr_t)_DYNAMIC, .rule = BEHIND_CALLER});
	return find_from(own->l_next, name, &ignored);
}

TM_AT_START_CODE uintptr_t tm_elf_first(const char *name)
{
	struct tm_elf_object ignored;
	if (first_map() == NULL)
		return walk_for((struct walk){.name = name, .rule = FROM_START});
	return find_from(first_map(), name, &ignored);
}

size_t tm_elf_first_size(const char *name)
{
	struct tm_elf_object object;
	size_t size = 0;
	if (first_map() == NULL || find_from(first_map(), name, &object) == 0)
		return 0;
	find_sized(&object, name, &size);
	return size;
}

TM_AT_START_CODE bool tm_elf_program(struct tm_elf_object *ret_program)
{
	const struct link_map *map = first_map();
	if (map == NULL || map->l_ld == NULL)
		return false;
	*ret_program = object_of(map);
	return true;
}

TM_AT_START_CODE bool tm_elf_self(struct tm_elf_object *ret_self)
{
	const struct link_map *own = own_map();
	if (own != NULL)
		*ret_self = object_of(own);
	return own != NULL;
}

TM_AT_START_CODE bool tm_elf_libc(struct tm_elf_object *ret_libc)
{
	/* libc is never unloaded; a race stores the same words twice */
	static _Atomic uintptr_t base;
	static const void *_Atomic dynamic;
	const void *known = atomic_load_explicit(&dynamic, memory_order_acquire);
	if (known != NULL) {
		*ret_libc = (struct tm_elf_object){
			atomic_load_explicit(&base, memory_order_relaxed), known};
		return true;
	}
	/* a symbol that no interposer has a reason to define */
	if (find_from(first_map(), "gnu_get_libc_version", ret_libc) == 0)
		return false;
	atomic_store_explicit(&base, ret_libc->base, memory_order_relaxed);
	atomic_store_explicit(&dynamic, ret_libc->dynamic, memory_order_release);
	return true;
}

uintptr_t tm_elf_next_after(uintptr_t address, const char *name, struct tm_elf_object *ret_object)
{
	struct walk w = {.name = name, .after = address, .rule = BEHIND_CALLER};
	each_object(&w);
	if (w.found != 0)
		*ret_object = w.object;
	return w.found;
}

uintptr_t tm_elf_anywhere(const char *name, struct tm_elf_object *ret_object)
{
	struct walk w = {.name = name, .rule = BUT_OURS};
	each_object(&w);
	if (w.found != 0 && ret_object != NULL)
		*ret_object = w.object;
	return w.found;
}

bool tm_elf_containing(uintptr_t address, struct tm_elf_object *ret_object)
{
	struct walk w = {.after = address, .rule = CONTAINING};
	each_object(&w);
	if (w.found != 0)
		*ret_object = w.object;
	return w.found != 0;
}

bool tm_elf_named(const char *soname, struct tm_elf_object *ret_object)
{
	struct walk w = {.name = soname, .rule = NAMED};
	each_object(&w);
	if (w.found != 0)
		*ret_object = w.object;
	return w.found != 0;
}

bool tm_elf_named_like(const char *prefix, struct tm_elf_object *ret_object)
{
	struct walk w = {.name = prefix, .rule = NAMED_LIKE};
	each_object(&w);
	if (w.found != 0)
		*ret_object = w.object;
	return w.found != 0;
}

const char *tm_elf_soname(const struct tm_elf_object *object)
{
	return text_of(object, DT_SONAME, 0);
}

const char *tm_elf_needed(const struct tm_elf_object *object, unsigned n)
{
	return text_of(object, DT_NEEDED, n);
}
