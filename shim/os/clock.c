/* SPDX-License-Identifier: MIT */
/* clock: see clock.h. Owns the address of the vDSO's function. */
#include "shim/os/clock.h"

#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>

#include "shim/base/parse.h"
#include "shim/os/proc.h"
#include "shim/os/sys.h"

#if defined(__x86_64__)
#define VDSO_NAME "__vdso_clock_gettime"
#elif defined(__aarch64__)
#define VDSO_NAME "__kernel_clock_gettime"
#else
#error "clock: no vDSO name for this architecture"
#endif

typedef int clock_fn(clockid_t clock, struct timespec *ret_time);

/*
 * 0 until the vDSO was found. An integer, because a data pointer can't be cast to a function
 * pointer.
 */
static _Atomic uintptr_t vdso_clock;

struct image {
	uintptr_t bias; /* load address - address in the file */
	const ElfW(Sym) * symbols;
	const char *strings;
	size_t symbol_count;
};

/* Number of symbols of an image without DT_HASH: from the last chain of the GNU hash table. */
static size_t gnu_symbol_count(const uint32_t *table)
{
	uint32_t buckets = table[0];
	uint32_t first = table[1];
	const uint32_t *bucket = table + 4 + table[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
	const uint32_t *chain = bucket + buckets;
	uint32_t last = 0;

	for (uint32_t i = 0; i < buckets; i++) {
		if (bucket[i] > last)
			last = bucket[i];
	}
	if (last < first)
		return first;
	while (!(chain[last - first] & 1))
		last++;
	return (size_t)last + 1;
}

static void read_dynamic(const ElfW(Dyn) * dyn, struct image *image)
{
	for (; dyn->d_tag != DT_NULL; dyn++) {
		uintptr_t at = image->bias + dyn->d_un.d_ptr;

		switch (dyn->d_tag) {
		case DT_SYMTAB: image->symbols = (const void *)at; break;
		case DT_STRTAB: image->strings = (const void *)at; break;
		case DT_HASH: image->symbol_count = ((const uint32_t *)at)[1]; break;
		case DT_GNU_HASH:
			if (image->symbol_count == 0)
				image->symbol_count = gnu_symbol_count((const uint32_t *)at);
			break;
		default: break;
		}
	}
}

static uintptr_t find_in_image(const struct image *image, const char *name)
{
	if (image->symbols == NULL || image->strings == NULL)
		return 0;
	for (size_t i = 0; i < image->symbol_count; i++) {
		const ElfW(Sym) *symbol = &image->symbols[i];

		if (symbol->st_shndx != SHN_UNDEF &&
		    tm_str_is(tm_str_of(image->strings + symbol->st_name), name))
			return image->bias + symbol->st_value;
	}
	return 0;
}

TM_AT_START_CODE void tm_clock_init(void)
{
	uintptr_t base = tm_proc_auxv(AT_SYSINFO_EHDR);
	const ElfW(Ehdr) *head = (const void *)base;
	const ElfW(Phdr) * part;
	const ElfW(Dyn) *dyn = NULL;
	struct image image = {0};
	bool loaded = false;

	if (base == 0)
		return;
	part = (const void *)(base + head->e_phoff);
	for (unsigned int i = 0; i < head->e_phnum; i++, part++) {
		if (part->p_type == PT_LOAD && !loaded) {
			image.bias = base + part->p_offset - part->p_vaddr;
			loaded = true;
		}
		if (part->p_type == PT_DYNAMIC)
			dyn = (const void *)(base + part->p_offset);
	}
	if (!loaded || dyn == NULL)
		return;
	read_dynamic(dyn, &image);
	atomic_store_explicit(&vdso_clock, find_in_image(&image, VDSO_NAME), memory_order_relaxed);
}

static struct timespec read_clock(clockid_t clock)
{
	uintptr_t at = atomic_load_explicit(&vdso_clock, memory_order_relaxed);
	struct timespec now = {0, 0};
	clock_fn *fn;

	if (at) {
		memcpy(&fn, &at, sizeof(fn));
		if (fn(clock, &now) == 0)
			return now;
	}
	tm_sys_clock_gettime(clock, &now);
	return now;
}

static uint64_t in_ns(struct timespec t)
{
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

TM_AT_START_CODE uint64_t tm_clock_ms(void)
{
	return in_ns(read_clock(CLOCK_MONOTONIC_COARSE)) / 1000000u;
}

uint64_t tm_clock_ns(void)
{
	return in_ns(read_clock(CLOCK_MONOTONIC));
}

uint64_t tm_clock_wall_s(void)
{
	return (uint64_t)read_clock(CLOCK_REALTIME_COARSE).tv_sec;
}

uint64_t tm_clock_wall_ns(void)
{
	struct timespec t = read_clock(CLOCK_REALTIME);

	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
