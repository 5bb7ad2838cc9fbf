/* SPDX-License-Identifier: MIT */
#include "shim/scan/scan_image.h"

#include <errno.h>
#include <fcntl.h>

#include "shim/base/bits.h"
#include "shim/base/fmt.h"
#include "shim/base/parse.h"
#include "shim/heap/account.h"
#include "shim/heap/arena.h"
#include "shim/heap/heap.h"
#include "shim/heap/span.h"
#include "shim/heap/zone.h"
#include "shim/ledger/ledger.h"
#include "shim/ledger/samples.h"
#include "shim/module.h"
#include "shim/os/clock.h"
#include "shim/os/maps.h"
#include "shim/os/mem.h"
#include "shim/os/sys.h"
#include "shim/scan/scan_memory.h"
#include "shim/scan/scan_suspects.h"

/* The ABI's red zone: a leaf function may use words below the stack pointer. */
#define RED_ZONE 128u
#define HEAP_AREA ((uintptr_t)8 << 30)

#define PLANES (TM_LEDGER_STALE + 1u)
#define DEAD_MAX 1024u
/* Addresses of user space; above may be tags (NaN boxes, memory tags). */
#define ADDRESS_MASK (((uintptr_t)1 << 47) - 1)
#define OWN_MAX 4u

struct range {
	uintptr_t start, end;
};

/* An object: its place and its bit. */
struct object {
	uintptr_t at;
	size_t bytes;
	uint64_t bit; /* its bit in the verdict bitmaps; UINT64_MAX: entry not in the file */
	unsigned epoch8;
	unsigned id;    /* of its row */
	uintptr_t heap; /* whose row */
};

static struct {
	const struct tm_scan_order *order;
	uint32_t *block; /* by granule: head's index + 1 of the block that covers it */
	uint64_t *mark;  /* by (address - zone) / 16 */
	uintptr_t *work; /* stack of marked objects still to be scanned */
	size_t work_count;
	uint8_t *plane[PLANES];           /* bits of sides / 3, then of granules */
	uint8_t *before;                  /* the last pass's ONCE */
	size_t plane_sides, plane_blocks; /* bytes of each part */
	uint64_t scanned;
	uint64_t found, found_bytes;
	struct range dead[DEAD_MAX]; /* of stacks, below their stack pointer */
	unsigned deads;
	uint64_t opaque;
	uint32_t hidden;
	uintptr_t own[OWN_MAX][2]; /* mappings of this pass, not to be scanned */
	unsigned own_count;
} image;

/* --- objects ---------------------------------------------------------------------------------- */

static bool block_at(uintptr_t word, size_t granule, struct object *ret)
{
	uint32_t head = image.block[granule];
	const struct tm_granule *g;

	if (head == 0)
		return false;
	g = &tm_zone.granules[head - 1];
	uintptr_t at = tm_zone.base + ((uintptr_t)g->large.page << TM_PAGE_SHIFT);
	if (word < at || word >= at + (g->large.pages << TM_PAGE_SHIFT))
		return false;
	*ret = (struct object){.at = at,
			       .bytes = g->large.requested,
			       .bit = image.plane_sides * 8 + head - 1,
			       .epoch8 = (unsigned)(g->large.account >> 16) & 0xff,
			       .id = (unsigned)g->large.account & 0xfff0,
			       .heap = tm_heap_base() + (g->large.account >> 24) * TM_HEAP_STRIDE};
	return true;
}

static bool slot_of(const struct tm_granule *head, uint32_t index, struct object *ret)
{
	size_t slot = tm_class_bytes(head->klass);
	bool small = head->klass < TM_SMALL_CLASSES;
	const uint8_t *e = head->side + index * (small ? 3u : 8u);
	uint64_t entry = 0, offset;

	__builtin_memcpy(&entry, e, small ? 3 : 8);
	if ((entry & 0xffff) == TM_ENTRY_FREE)
		return false;
	ret->at = (uintptr_t)tm_span_base(head) + index * slot;
	ret->bytes = small               ? slot
		     : tm_arena_is(head) ? entry >> 24
					 : tm_bits_min(entry >> 24, slot);
	ret->bit = tm_ledger_side_offset(e, &offset) ? offset / 3 : UINT64_MAX;
	ret->epoch8 = (unsigned)(entry >> 16) & 0xff;
	ret->id = (unsigned)entry & 0xfff0;
	ret->heap = tm_granule_owner(head) & ~TM_OWNER_BITS;
	return true;
}

static bool object_at(uintptr_t word, struct object *ret)
{
	size_t granule = (word - tm_zone.base) >> TM_GRANULE_SHIFT;
	const struct tm_granule *g = &tm_zone.granules[granule];
	uintptr_t owner = tm_granule_owner(g);

	if (owner == TM_OWNER_NONE || owner == TM_OWNER_LARGE || image.block[granule] != 0)
		return block_at(word, granule, ret);
	const struct tm_granule *head = &tm_zone.granules[g->head - 1];
	if (head->side == NULL || head->klass >= TM_LISTS)
		return false;
	size_t index = (word - (uintptr_t)tm_span_base(head)) / tm_class_bytes(head->klass);
	if (index >= head->nslots || index < tm_span_first(head))
		return false;
	/* an arena's object begins at the nearest line before it whose entry says so */
	if (tm_arena_is(head)) {
		while (index > TM_ARENA_FIRST && tm_span_entry_is_free(head, (uint32_t)index))
			index--;
		return slot_of(head, (uint32_t)index, ret) && word < ret->at + ret->bytes;
	}
	return slot_of(head, (uint32_t)index, ret);
}

/* --- marking ---------------------------------------------------------------------------------- */

static bool set_mark(uintptr_t at)
{
	size_t bit = (at - tm_zone.base) >> 4;
	uint64_t mask = UINT64_C(1) << (bit % 64);

	if ((image.mark[bit / 64] & mask) != 0)
		return false;
	image.mark[bit / 64] |= mask;
	return true;
}

static bool is_marked(uintptr_t at)
{
	size_t bit = (at - tm_zone.base) >> 4;

	return (image.mark[bit / 64] >> (bit % 64) & 1) != 0;
}

static void consider(uintptr_t word)
{
	struct object o;

	word &= ADDRESS_MASK;
	if (word - tm_zone.base >= tm_zone.len || !object_at(word, &o) || !set_mark(o.at))
		return;
	image.work[image.work_count++] = o.at;
}

static void follow(void);

/*
 * --- memory that an image may not have (scan_memory.h) -----------------------------------------
 */

static void look_into_object(const struct object *o, void (*see)(uintptr_t word))
{
	image.opaque += tm_scan_memory_look(TM_SCAN_ZONE, o->at, o->at + o->bytes, see);
}

/* The parent's mappings that the image lacks. */
static void root_of_parent(const struct tm_maps_line *line, void *arg)
{
	(void)arg;
	if (!line->readable || !line->writable || line->shared || line->special ||
	    (line->end > tm_zone.base && line->start < tm_zone.base + tm_zone.len) ||
	    (line->end > tm_heap_base() && line->start < tm_heap_base() + HEAP_AREA))
		return;
	image.opaque += tm_scan_memory_look(TM_SCAN_PARENTS, line->start, line->end, consider);
	follow();
}

static void follow(void)
{
	struct object o;

	while (image.work_count != 0) {
		uintptr_t at = image.work[--image.work_count];

		if (!object_at(at, &o))
			continue;
		image.scanned += o.bytes;
		look_into_object(&o, consider);
	}
}

/* --- roots ------------------------------------------------------------------------------------ */

/* What lies below the stack pointer of the one thread whose stack this is. */
static uintptr_t live_from(uintptr_t start, uintptr_t end)
{
	uintptr_t sp = 0;
	unsigned inside = 0;

	for (uint32_t i = 0; i < image.order->threads; i++) {
		if (image.order->thread[i].sp < start || image.order->thread[i].sp >= end)
			continue;
		sp = image.order->thread[i].sp;
		inside++;
	}
	if (image.order->own_sp >= start && image.order->own_sp < end) {
		sp = image.order->own_sp;
		inside++;
	}
	/* several threads (coroutines, a pool of stacks): scan all of it */
	return inside == 1 && sp - start > RED_ZONE ? sp - RED_ZONE : start;
}

static void root(uintptr_t start, uintptr_t end)
{
	uintptr_t live = live_from(start, end);

	if (live != start && image.deads < DEAD_MAX)
		image.dead[image.deads++] = (struct range){start, live};
	start = live;
	image.scanned += end - start;
	tm_scan_memory_words(start, end, consider);
	follow();
}

/* All of it but a range. */
static void root_without(uintptr_t start, uintptr_t end, const uintptr_t (*hole)[2], unsigned holes)
{
	if (start >= end)
		return;
	if (holes == 0) {
		root(start, end);
		return;
	}
	uintptr_t from = hole[0][0], to = hole[0][1];

	if (from >= end || to <= start) {
		root_without(start, end, hole + 1, holes - 1);
		return;
	}
	root_without(start, from > start ? from : start, hole + 1, holes - 1);
	root_without(to < end ? to : end, end, hole + 1, holes - 1);
}

static void roots(const struct tm_maps_line *line, void *arg)
{
	const uintptr_t heaps = tm_heap_base();
	const uintptr_t granules = (uintptr_t)tm_zone.granules;
	const size_t count = tm_zone.len >> TM_GRANULE_SHIFT;
	const uintptr_t hole[][2] = {
		{tm_zone.base, tm_zone.base + tm_zone.len},
		{heaps, heaps + HEAP_AREA},
		{granules, granules + count * sizeof(struct tm_granule)},
		{image.order->helper, image.order->helper_end},
		{(uintptr_t)&image, (uintptr_t)(&image + 1)},
		{(uintptr_t)image.order, (uintptr_t)(image.order + 1)},
		{image.own[0][0], image.own[0][1]},
		{image.own[1][0], image.own[1][1]},
		{image.own[2][0], image.own[2][1]},
		{image.own[3][0], image.own[3][1]},
		{(uintptr_t)image.order->room, (uintptr_t)image.order->room + TM_SCAN_ROOM_BYTES},
	};

	(void)arg;
	if (line->readable && line->writable && !line->shared && !line->special)
		root_without(line->start, line->end, hole, TM_ARRAY_LEN(hole));
}

/*
 * Host memory visible to devices is no private mapping, and may be unreadable in the image: a plain
 * access could raise a signal. So the kernel copies the readable part through a pipe.
 */
#define PIPE_BYTES ((uintptr_t)64 << 10)

static int pipe_end[2]; /* for reading, for writing */
static uint64_t *pipe_text;

static void visible(uintptr_t start, uintptr_t end)
{
	long copied, back;

	consider(start);
	for (; start < end; start += PIPE_BYTES) {
		copied = tm_syscall6(SYS_write, pipe_end[1], (long)start,
				     (long)tm_bits_min(end - start, PIPE_BYTES), 0, 0, 0);
		if (copied <= 0)
			break;
		back = tm_syscall6(SYS_read, pipe_end[0], (long)(uintptr_t)pipe_text, copied, 0, 0,
				   0);
		if (back != copied)
			break;
		image.scanned += (uint64_t)copied;
		tm_scan_memory_words((uintptr_t)pipe_text, (uintptr_t)pipe_text + (uintptr_t)copied,
				     consider);
	}
	follow();
}

static void visible_roots(void)
{
	const struct tm_module *cuda = tm_module_cuda();

	if (cuda == NULL ||
	    tm_syscall6(SYS_pipe2, (long)(uintptr_t)pipe_end, O_NONBLOCK, 0, 0, 0, 0) != 0)
		return;
	pipe_text = tm_mem_map(PIPE_BYTES);
	if (pipe_text != NULL)
		cuda->each_visible(visible);
}

/* --- verdicts --------------------------------------------------------------------------------- */

static void set_bit(unsigned plane, uint64_t bit)
{
	image.plane[plane][bit / 8] |= (uint8_t)(1u << (bit % 8));
}

static bool has_bit(const uint8_t *plane, uint64_t bit)
{
	return (plane[bit / 8] >> (bit % 8) & 1) != 0;
}

static void point_out_as(unsigned plane, uintptr_t word)
{
	struct object o;

	word &= ADDRESS_MASK;
	if (word - tm_zone.base < tm_zone.len && object_at(word, &o) && !is_marked(o.at) &&
	    o.bit != UINT64_MAX && has_bit(image.plane[TM_LEDGER_ONCE], o.bit))
		set_bit(plane, o.bit);
}

static void point_out(uintptr_t word)
{
	point_out_as(TM_LEDGER_INDIRECT, word);
}

static void point_out_stale(uintptr_t word)
{
	point_out_as(TM_LEDGER_STALE, word);
}

static void judge(const struct object *o, uint32_t epoch, uint32_t last_epoch)
{
	uint32_t age = tm_ledger_age(epoch, o->epoch8);

	if (is_marked(o->at) || o->bit == UINT64_MAX || age == 0)
		return;
	set_bit(TM_LEDGER_ONCE, o->bit);
	if (tm_scan_suspect(tm_account_row(o->heap, o->id))) {
		image.hidden++;
		return;
	}
	/* born before the last pass, so it is the object that was judged then */
	if (last_epoch == 0 || !has_bit(image.before, o->bit) || age <= epoch - last_epoch)
		return;
	set_bit(TM_LEDGER_TWICE, o->bit);
	image.found++;
	image.found_bytes += o->bytes;
}

static void each_object(void (*act)(const struct object *o))
{
	size_t granules = tm_zone.len >> TM_GRANULE_SHIFT;
	struct object o;

	for (size_t i = 0; i < granules; i++) {
		const struct tm_granule *g = &tm_zone.granules[i];
		uintptr_t owner = tm_granule_owner(g);

		if (owner == TM_OWNER_LARGE) {
			uintptr_t at = tm_zone.base + ((uintptr_t)g->large.page << TM_PAGE_SHIFT);

			if (block_at(at, i, &o))
				act(&o);
		} else if (owner != TM_OWNER_NONE && g->head == i + 1 && g->side != NULL &&
			   g->klass < TM_LISTS) {
			for (uint32_t n = (uint32_t)tm_span_first(g); n < g->nslots; n++)
				if (slot_of(g, n, &o))
					act(&o);
		}
	}
}

static void judge_one(const struct object *o)
{
	const struct tm_ledger_header *h = tm_ledger_header();

	judge(o, h->epoch, h->scan_epoch);
}

static void count_same(const struct object *o)
{
	const struct tm_ledger_header *h = tm_ledger_header();

	if (o->bit != UINT64_MAX && h->scan_epoch != 0 && has_bit(image.before, o->bit) &&
	    tm_ledger_age(h->epoch, o->epoch8) > h->epoch - h->scan_epoch)
		tm_scan_suspect_stays(tm_account_row(o->heap, o->id));
}

static void show_children(const struct object *o)
{
	if (o->bit != UINT64_MAX && has_bit(image.plane[TM_LEDGER_ONCE], o->bit))
		look_into_object(o, point_out);
}

/* --- the pass --------------------------------------------------------------------------------- */

static void *table(size_t bytes)
{
	char *p;

	bytes = (bytes + TM_PAGE_BYTES) & ~(TM_PAGE_BYTES - 1);
	p = tm_mem_map(bytes);
	image.own[image.own_count][0] = (uintptr_t)p;
	image.own[image.own_count++][1] = (uintptr_t)p + bytes;
	return p;
}

static bool make_tables(void)
{
	size_t granules = tm_zone.len >> TM_GRANULE_SHIFT;

	image.plane_sides = (size_t)(tm_ledger_sides_bytes() / 24 + 8) & ~(size_t)7;
	image.plane_blocks = granules / 8 + 8;
	size_t plane = image.plane_sides + image.plane_blocks;
	image.block = table(granules * sizeof(uint32_t));
	image.mark = table(tm_zone.len / 128);
	image.work = table(tm_zone.len / 2);
	uint8_t *planes = table((PLANES + 1) * plane);
	if (image.block == NULL || image.mark == NULL || image.work == NULL || planes == NULL)
		return false;
	for (unsigned i = 0; i < PLANES; i++)
		image.plane[i] = planes + i * plane;
	image.before = planes + PLANES * plane;
	for (size_t i = 0; i < granules; i++) {
		const struct tm_granule *g = &tm_zone.granules[i];

		if (tm_granule_owner(g) != TM_OWNER_LARGE)
			continue;
		size_t last =
			(g->large.page + g->large.pages - 1) >> (TM_GRANULE_SHIFT - TM_PAGE_SHIFT);
		for (size_t n = i; n <= last && n < granules; n++)
			if (n == i || tm_granule_owner(&tm_zone.granules[n]) == TM_OWNER_NONE)
				image.block[n] = (uint32_t)i + 1;
	}
	return true;
}

static long at_plane(unsigned plane, bool blocks)
{
	return (long)(TM_LEDGER_VERDICTS_AT + plane * TM_LEDGER_VERDICT_STRIDE +
		      (blocks ? TM_LEDGER_VERDICT_BLOCKS : 0));
}

static void read_before(int fd)
{
	tm_sys_pread(fd, image.before, image.plane_sides, at_plane(TM_LEDGER_ONCE, false));
	tm_sys_pread(fd, image.before + image.plane_sides, image.plane_blocks,
		     at_plane(TM_LEDGER_ONCE, true));
}

static int write_planes(int fd)
{
	for (unsigned i = 0; i < PLANES; i++) {
		if (tm_syscall6(SYS_pwrite64, fd, (long)(uintptr_t)image.plane[i],
				(long)image.plane_sides, at_plane(i, false), 0,
				0) != (long)image.plane_sides)
			return -ENOSPC;
		if (tm_syscall6(SYS_pwrite64, fd,
				(long)(uintptr_t)(image.plane[i] + image.plane_sides),
				(long)image.plane_blocks, at_plane(i, true), 0,
				0) != (long)image.plane_blocks)
			return -ENOSPC;
	}
	return 0;
}

int tm_scan_image(const struct tm_scan_order *order)
{
	struct tm_ledger_header *h = tm_ledger_header();
	int fd = tm_sys_open(tm_ledger_path(), O_RDWR | O_NOFOLLOW, 0), rc;
	char parent[32];

	if (fd < 0)
		return fd;
	__builtin_memset(&image, 0, sizeof(image));
	image.order = order;
	rc = tm_scan_memory_begin(order->room);
	if (rc != 0)
		return rc;
	if (!make_tables())
		return -ENOMEM;
	for (uint32_t i = 0; i < order->threads; i++)
		consider(order->thread[i].sp); /* a stack that is an object */
	rc = tm_maps_each(roots, NULL);
	if (rc != 0)
		return rc;
	visible_roots();
	tm_fmt(parent, sizeof(parent), "/proc/%ld/maps",
	       tm_syscall6(SYS_getppid, 0, 0, 0, 0, 0, 0));
	(void)tm_maps_each_of(&(struct tm_maps_source){parent, NULL}, root_of_parent, NULL);
	read_before(fd);
	tm_scan_suspects_begin();
	each_object(count_same);
	tm_scan_suspects_learn();
	each_object(judge_one);
	each_object(show_children);
	for (unsigned i = 0; i < image.deads; i++)
		tm_scan_memory_words(image.dead[i].start, image.dead[i].end, point_out_stale);
	rc = write_planes(fd);
	if (rc != 0)
		return rc;
	h->scan_epoch = h->epoch;
	h->scan_level = order->level;
	h->scanned_bytes = image.scanned;
	h->scan_ms = tm_clock_ms();
	h->scan_hidden = image.hidden;
	h->opaque_bytes = image.opaque;
	h->scan_passes++;
	tm_samples_event(TM_LEDGER_SCANNED, 0, image.found, image.found_bytes);
	return 0;
}
