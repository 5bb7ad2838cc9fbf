/* SPDX-License-Identifier: MIT */
#include "shim/family.h"

#include <errno.h>
#include <limits.h>

#include "shim/alloc.h"
#include "shim/base/fmt.h"
#include "shim/boot.h"
#include "shim/dl.h"
#include "shim/elf.h"
#include "shim/os/msg.h"
#include "shim/report.h"

/* --- passing on ------------------------------------------------------------------------------- */

/* The next definition of a name: true with *ret_function set. */
static bool next_is(const char *name, void *ret_function)
{
	uintptr_t address = tm_elf_next(name);
	if (address == 0)
		return false;
	__builtin_memcpy(ret_function, &address, sizeof(address));
	return true;
}

/* True where libc serves; false where the engine does. */
static bool passes(const char *name, void *ret_function)
{
	return tm_boot() && tm_root.server == TM_SERVER_LIBC && next_is(name, ret_function);
}

/* For functions that return blocks: true also if another library interposes malloc before us. */
TM_INLINE bool gives_no_block(void)
{
	return TM_UNLIKELY(tm_root.server != TM_SERVER_ENGINE || tm_root.behind) && tm_boot() &&
	       (tm_root.server == TM_SERVER_LIBC || tm_root.behind);
}

/* --- alignment -------------------------------------------------------------------------------- */

static bool is_power_of_2(size_t n)
{
	return n != 0 && (n & (n - 1)) == 0;
}

static TM_COLD void *pass_aligned(const char *name, size_t align, size_t size)
{
	void *(*next)(size_t, size_t) = NULL;
	return next_is(name, &next) ? next(align, size) : NULL;
}

static TM_COLD void *pass_pages(const char *name, size_t size)
{
	void *(*next)(size_t) = NULL;
	return next_is(name, &next) ? next(size) : NULL;
}

/*
 * glibc rounds a strange alignment up to the next power of two, for memalign and (up to 2.37) for
 * aligned_alloc. Every path ends in a tail call, so that the engine sees the program's address.
 */
TM_INLINE void *aligned(const char *name, size_t align, size_t size)
{
	if (gives_no_block())
		return pass_aligned(name, align, size);
	if (TM_UNLIKELY(!is_power_of_2(align))) {
		if (align > SIZE_MAX / 2 + 1) {
			errno = EINVAL;
			return NULL;
		}
		align = align <= 1 ? 1 : (size_t)1 << (64 - __builtin_clzl(align - 1));
	}
	return tm_root.ops.memalign(align, size);
}

void *tm_family_memalign(size_t align, size_t size)
{
	return aligned("memalign", align, size);
}

void *tm_family_aligned_alloc(size_t align, size_t size)
{
	return aligned("aligned_alloc", align, size);
}

int tm_family_check_posix_align(size_t align)
{
	return is_power_of_2(align) && align % sizeof(void *) == 0 ? 0 : EINVAL;
}

static size_t page_bytes(void)
{
	return tm_boot() ? tm_root.page_bytes : TM_PAGE_BYTES;
}

void *tm_family_valloc(size_t size)
{
	if (gives_no_block())
		return pass_pages("valloc", size);
	return tm_root.ops.memalign(page_bytes(), size);
}

static TM_COLD void *no_memory(void)
{
	errno = ENOMEM;
	return NULL;
}

void *tm_family_pvalloc(size_t size, void *(*entry)(size_t, size_t))
{
	size_t page = page_bytes(), bytes;
	if (gives_no_block())
		return pass_pages("pvalloc", size);
	if (__builtin_add_overflow(size, page - 1, &bytes))
		return no_memory();
	return entry(page, bytes & ~(page - 1));
}

/* realloc as the program's calls reach it. */
static TM_COLD void *first_realloc(void *p, size_t size)
{
	void *(*first)(void *, size_t) = NULL;
	TM_ELF_FUNCTION(tm_elf_first("realloc"), &first);
	return first(p, size);
}

void *tm_family_reallocarray(void *p, size_t n, size_t size, void *(*entry)(void *, size_t))
{
	size_t bytes;
	if (TM_UNLIKELY(__builtin_mul_overflow(n, size, &bytes)))
		return no_memory();
	if (gives_no_block())
		return first_realloc(p, bytes);
	return entry(p, bytes);
}

/* --- statistics ------------------------------------------------------------------------------- */

static void snapshot(struct tm_snapshot *s)
{
	*s = (struct tm_snapshot){0};
	if (tm_boot() && tm_root.server == TM_SERVER_ENGINE && tm_report_snapshot(s) != 0)
		*s = (struct tm_snapshot){0};
}

/* In glibc's terms: small blocks are in arenas, large ones are mmapped. */
static struct tm_family_info info_of(const struct tm_snapshot *s)
{
	struct tm_family_info i = {0};
	i.hblks = s->large_blocks;
	i.hblkhd = s->large_bytes;
	i.uordblks = s->slot_bytes - s->large_bytes;
	i.fordblks = s->cached_bytes;
	i.arena = i.uordblks + i.fordblks;
	i.ordblks = s->cached_bytes / TM_PAGE_BYTES;
	i.keepcost = s->cached_bytes;
	return i;
}

struct tm_family_info tm_family_mallinfo2(void)
{
	struct tm_family_info (*next)(void);
	struct tm_snapshot s;
	if (passes("mallinfo2", &next))
		return next();
	snapshot(&s);
	return info_of(&s);
}

static int saturated(size_t n)
{
	return n > INT_MAX ? INT_MAX : (int)n;
}

struct mallinfo tm_family_mallinfo(void)
{
	struct mallinfo (*next)(void);
	struct tm_family_info i;
	if (passes("mallinfo", &next))
		return next();
	i = tm_family_mallinfo2();
	return (struct mallinfo){.arena = saturated(i.arena),
				 .ordblks = saturated(i.ordblks),
				 .hblks = saturated(i.hblks),
				 .hblkhd = saturated(i.hblkhd),
				 .uordblks = saturated(i.uordblks),
				 .fordblks = saturated(i.fordblks),
				 .keepcost = saturated(i.keepcost)};
}

static void xml_heap(struct tm_fmt_out *out, unsigned nr, const struct tm_snapshot_part *p)
{
	uint64_t pages = p->cached_bytes / TM_PAGE_BYTES;
	tm_fmt_add(out, "<heap nr=\"%u\">\n<sizes>\n", nr);
	if (p->cached_bytes != 0)
		tm_fmt_add(out, "  <unsorted from=\"%u\" to=\"%u\" total=\"%zu\" count=\"%zu\"/>\n",
			   16u, (unsigned)TM_UNIT_BYTES, (size_t)p->cached_bytes, (size_t)pages);
	tm_fmt_add(
		out,
		"</sizes>\n<total type=\"fast\" count=\"0\" size=\"0\"/>\n"
		"<total type=\"rest\" count=\"%zu\" size=\"%zu\"/>\n"
		"<system type=\"current\" size=\"%zu\"/>\n<system type=\"max\" size=\"%zu\"/>\n"
		"<aspace type=\"total\" size=\"%zu\"/>\n<aspace type=\"mprotect\" size=\"%zu\"/>\n</heap>\n",
		(size_t)pages, (size_t)p->cached_bytes, (size_t)(p->slot_bytes + p->cached_bytes),
		(size_t)p->mapped_bytes, (size_t)p->mapped_bytes, (size_t)p->mapped_bytes);
}

static void xml_total(struct tm_fmt_out *out, const struct tm_snapshot *s)
{
	uint64_t pages = s->cached_bytes / TM_PAGE_BYTES;
	tm_fmt_add(
		out,
		"<total type=\"fast\" count=\"0\" size=\"0\"/>\n"
		"<total type=\"rest\" count=\"%zu\" size=\"%zu\"/>\n"
		"<total type=\"mmap\" count=\"%zu\" size=\"%zu\"/>\n"
		"<system type=\"current\" size=\"%zu\"/>\n<system type=\"max\" size=\"%zu\"/>\n"
		"<aspace type=\"total\" size=\"%zu\"/>\n<aspace type=\"mprotect\" size=\"%zu\"/>\n"
		"</malloc>\n",
		(size_t)pages, (size_t)s->cached_bytes, (size_t)s->large_blocks,
		(size_t)s->large_bytes, (size_t)(s->slot_bytes + s->cached_bytes),
		(size_t)s->mapped_peak_bytes, (size_t)s->mapped_bytes, (size_t)s->mapped_bytes);
}

static void flush(struct tm_fmt_out *out, FILE *stream)
{
	fwrite(out->buf, 1, tm_fmt_stored(out), stream);
	out->len = 0;
}

/*
 * The format of glibc's malloc_info, version 1; each part appears as a heap. The stream is the
 * program's, so its own stdio writes, a heap at a time for the stack's sake; no lock of ours is
 * held meanwhile.
 */
int tm_family_malloc_info(int options, FILE *stream)
{
	int (*next)(int, FILE *);
	struct tm_snapshot s;
	char buf[1024];
	struct tm_fmt_out out = {buf, sizeof(buf), 0};
	if (passes("malloc_info", &next))
		return next(options, stream);
	if (options != 0)
		return EINVAL;
	snapshot(&s);
	tm_fmt_add(&out, "<malloc version=\"1\">\n");
	for (unsigned i = 0; i < TM_SNAPSHOT_PARTS && (i == 0 || s.part[i].name != NULL); i++) {
		xml_heap(&out, i, &s.part[i]);
		flush(&out, stream);
	}
	xml_total(&out, &s);
	flush(&out, stream);
	return 0;
}

void tm_family_malloc_stats(void)
{
	void (*next)(void);
	struct tm_snapshot s;
	struct tm_family_info i;
	char buf[512];
	struct tm_fmt_out out = {buf, sizeof(buf), 0};
	if (passes("malloc_stats", &next)) {
		next();
		return;
	}
	snapshot(&s);
	i = info_of(&s);
	tm_fmt_add(&out,
		   "Arena 0:\nsystem bytes     = %10zu\nin use bytes     = %10zu\n"
		   "Total (incl. mmap):\nsystem bytes     = %10zu\nin use bytes     = %10zu\n"
		   "max mmap regions = %10zu\nmax mmap bytes   = %10zu\n",
		   i.arena, i.uordblks, i.arena + i.hblkhd, i.uordblks + i.hblkhd, i.hblks,
		   i.hblkhd);
	tm_msg_write(2, buf, tm_fmt_stored(&out));
}

/* --- tuning ----------------------------------------------------------------------------------- */

/*
 * Programs set these for glibc's arenas; what they ask for, less memory kept, is what we do anyway.
 */
int tm_family_mallopt(int parameter, int value)
{
	int (*next)(int, int);
	if (passes("mallopt", &next))
		return next(parameter, value);
	/* The one value that glibc refuses: small bins above 80 words. */
	return parameter == M_MXFAST && (value < 0 || (size_t)value > 80 * sizeof(size_t) / 4) ? 0
											       : 1;
}

int tm_family_malloc_trim(size_t pad)
{
	int (*next)(size_t);
	if (passes("malloc_trim", &next))
		return next(pad);
	return tm_boot() && tm_root.server == TM_SERVER_ENGINE && tm_alloc_trim() != 0;
}

/* --- dlsym ------------------------------------------------------------------------------------ */

/* Replaces libc's definition by ours; another library's is what the caller asked for. */
static void *answer_family(const char *name, void *found)
{
	struct tm_elf_object libc, self;
	uintptr_t ours;
	if (tm_root.server != TM_SERVER_ENGINE || !tm_elf_libc(&libc) || !tm_elf_self(&self))
		return found;
	if (tm_elf_find(&libc, name) != (uintptr_t)found)
		return found;
	ours = tm_elf_find(&self, name);
	return ours == 0 ? found : (void *)ours;
}

/*
 * The C part of symbols.def: libstdc++'s operators call malloc, which is ours, whoever finds them.
 */
static const char dl_names[][24] = {
#define C(name) name,
#define GNU(name) name,
#define GLIBC(name) name,
#define CXX(name)
#define PROCESS(name)
#define S(name, kind, family, meaning) family(#name)
#include "shim/base/symbols.def"
#undef S
};

tm_dl_handler tm_family_dl(const char *name)
{
	struct tm_str wanted = tm_str_of(name);

	for (size_t i = 0; i < TM_ARRAY_LEN(dl_names); i++)
		if (tm_str_is(wanted, dl_names[i]))
			return answer_family;
	return NULL;
}
