/* SPDX-License-Identifier: MIT */
/* places: see places.h. */
#include "shim/places.h"

#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>

#include "policies/rules_symbols.h"
#include "shim/base/bits.h"
#include "shim/base/fmt.h"
#include "shim/heap/meta.h"
#include "shim/ledger/modules.h"
#include "shim/os/lock.h"
#include "shim/os/maps.h"
#include "shim/os/mem.h"
#include "shim/os/msg.h"
#include "shim/os/proc.h"
#include "shim/os/sys.h"
#include "shim/unwind/unwind.h"

#define FILES_MAX 1024u
#define RANGES_MAX 16384u
#define BUILD_ID_MAX 20u

struct known {
	uintptr_t begin;
	_Atomic uintptr_t end; /* 0: withdrawn */
	uintptr_t bias;
	uint32_t rules_read; /* [lock] number of rules whose symbols were searched in this file */
	char path[256];
	char build_id[2 * BUILD_ID_MAX + 1];
};

static struct {
	struct tm_lock lock;
	struct known *known;    /* FILES_MAX of them; NULL: none yet */
	_Atomic uint32_t count; /* of completed records */
	struct tm_rules_ranges ranges;
} places = {.lock = TM_LOCK_INIT(TM_RANK_PLACES)};

static struct known *find(uintptr_t address)
{
	uint32_t count = atomic_load_explicit(&places.count, memory_order_acquire);

	/* newest first: an earlier file may have been mapped at this address */
	while (count-- > 0) {
		struct known *k = &places.known[count];

		if (address > k->begin &&
		    address <= atomic_load_explicit(&k->end, memory_order_relaxed))
			return k;
	}
	return NULL;
}

/* Address in memory less address in the file: the program headers lie at the object's beginning. */
static uintptr_t bias_of(uintptr_t begin)
{
	const ElfW(Ehdr) *head = (const ElfW(Ehdr) *)begin;
	const ElfW(Phdr) *p = (const ElfW(Phdr) *)(begin + head->e_phoff);

	for (unsigned i = 0; i < head->e_phnum; i++) {
		if (p[i].p_type == PT_LOAD)
			return begin - tm_bits_align_down(p[i].p_vaddr, tm_proc_page_bytes());
	}
	return begin;
}

static struct tm_str name_of(const char *path)
{
	struct tm_str name = tm_str_of(path);

	for (size_t i = name.len; i > 0; i--) {
		if (path[i - 1] == '/')
			return (struct tm_str){path + i, name.len - i};
	}
	return name;
}

static struct known *learn(uintptr_t address)
{
	uint32_t count = atomic_load_explicit(&places.count, memory_order_relaxed);
	struct tm_unwind_object object;
	struct tm_maps_range range;
	uint8_t id[BUILD_ID_MAX];
	uint32_t id_bytes;
	struct known *k;

	if (places.known == NULL)
		places.known = tm_meta_alloc(FILES_MAX * sizeof(*k), 16);
	if (places.known == NULL || count == FILES_MAX || !tm_proc_may_open() ||
	    !tm_unwind_object(address - 1, &object) || object.begin == 0)
		return NULL;
	k = &places.known[count];
	if (tm_maps_object(object.begin, &range, k->path, sizeof(k->path)) != 0)
		return NULL;
	k->begin = object.begin;
	k->bias = bias_of(object.begin);
	id_bytes = tm_modules_build_id(object.begin, id, sizeof(id));
	for (uint32_t i = 0; i < id_bytes; i++)
		tm_fmt(k->build_id + 2 * i, 3, "%02x", id[i]);
	atomic_store_explicit(&k->end, object.end, memory_order_relaxed);
	atomic_store_explicit(&places.count, count + 1, memory_order_release);
	return k;
}

/* --- functions -------------------------------------------------------------------------------- */

static void read_symbols(const struct tm_rules *rules, const struct known *k, uint32_t first_rule)
{
	struct tm_rules_module module = {
		.name = name_of(k->path), .load_bias = k->bias, .first_rule = first_rule};
	int fd = tm_sys_open(k->path, O_RDONLY, 0);
	long bytes = fd < 0 ? -1 : tm_sys_lseek(fd, 0, SEEK_END);
	uint32_t lost = 0;
	long at = bytes <= 0 ? -1 : tm_sys_mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE, fd, 0);

	if (fd >= 0)
		tm_sys_close(fd);
	if (bytes <= 0 || tm_sys_is_error(at)) {
		tm_msg(TM_MSG_WARN, "'%s' cannot be read, its symbols match no rule", k->path);
		return;
	}
	module.file = (const void *)at;
	module.file_bytes = (size_t)bytes;
	tm_rules_symbols_add(rules, &places.ranges, &module, &lost);
	tm_sys_munmap((void *)at, (size_t)bytes);
	if (lost != 0)
		tm_msg(TM_MSG_WARN, "%u functions of '%s' that symbol rules match are left out",
		       lost, k->path);
}

static void where(void *context, uintptr_t return_address, struct tm_rules_place *place)
{
	const struct tm_route *route = context;
	uint32_t rules = atomic_load_explicit(&route->rules->count, memory_order_acquire);
	struct known *k;

	tm_lock_acquire(&places.lock);
	k = find(return_address);
	if (k == NULL)
		k = learn(return_address);
	if (k != NULL && k->rules_read < rules) {
		if (route->rules->by_symbol && places.ranges.range != NULL)
			read_symbols(route->rules, k, k->rules_read);
		k->rules_read = rules;
	}
	tm_lock_release(&places.lock);
	if (k == NULL)
		return;
	place->module = name_of(k->path);
	place->build_id = tm_str_of(k->build_id);
	place->offset = return_address - k->bias;
}

void tm_places_serve(struct tm_route *route)
{
	if (places.ranges.range == NULL) {
		places.ranges.range = tm_mem_map(RANGES_MAX * sizeof(*places.ranges.range));
		places.ranges.capacity = places.ranges.range ? RANGES_MAX : 0;
	}
	route->ranges = &places.ranges;
	route->context = route;
	route->where = where;
}

void tm_places_forget(uintptr_t begin, uintptr_t end)
{
	uint32_t count = atomic_load_explicit(&places.count, memory_order_acquire);

	for (uint32_t i = 0; i < count; i++) {
		if (places.known[i].begin >= begin && places.known[i].begin < end)
			atomic_store_explicit(&places.known[i].end, 0, memory_order_relaxed);
	}
}

TM_AT_START_CODE void tm_places_init(void)
{
	tm_lock_register(&places.lock);
}
