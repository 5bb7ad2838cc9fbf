/* SPDX-License-Identifier: MIT */
#include "shim/scan/scan_memory.h"

#include <errno.h>

#include "shim/base/bits.h"
#include "shim/heap/zone.h"
#include "shim/os/maps.h"
#include "shim/os/mem.h"
#include "shim/os/sys.h"
#include "shim/scan/scan_image.h"

#define RANGES_MAX 4096u
#define COPY_BYTES ((uintptr_t)64 << 10)

struct range {
	uintptr_t start, end;
};

struct ranges { /* by address */
	struct range *at;
	size_t count; /* at most RANGES_MAX */
};
_Static_assert(2 * RANGES_MAX * sizeof(struct range) + TM_MAPS_ROOM_BYTES <= TM_SCAN_ROOM_BYTES,
	       "room for all");

static struct {
	struct ranges present; /* of the zone, what the image can read */
	struct ranges mine;    /* elsewhere */
	char *copy;            /* COPY_BYTES of the parent's memory; NULL: no memory */
	long parent;
} memory;

/* Returns the bytes that could not be read. */
static uint64_t look_into_parents(uintptr_t from, uintptr_t to, void (*see)(uintptr_t word))
{
	struct {
		uintptr_t at;
		size_t bytes;
	} local, remote;

	while (from < to) {
		remote.at = from;
		local.at = (uintptr_t)memory.copy;
		local.bytes = remote.bytes = tm_bits_min(to - from, COPY_BYTES);
		long n = memory.copy == NULL ? -ENOMEM
					     : tm_syscall6(SYS_process_vm_readv, memory.parent,
							   (long)(uintptr_t)&local, 1,
							   (long)(uintptr_t)&remote, 1, 0);
		if (n <= 0)
			return to - from;
		tm_scan_memory_words(local.at, local.at + (uintptr_t)n, see);
		from += (uintptr_t)n;
	}
	return 0;
}

/* The first range that ends behind an address. */
static size_t first_behind(const struct ranges *r, uintptr_t at)
{
	size_t low = 0, high = r->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (r->at[middle].end <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint64_t tm_scan_memory_look(enum tm_scan_memory which, uintptr_t start, uintptr_t end,
			     void (*see)(uintptr_t word))
{
	const struct ranges *r = which == TM_SCAN_ZONE ? &memory.present : &memory.mine;
	uint64_t opaque = 0;

	if (which == TM_SCAN_PARENTS && r->count == RANGES_MAX)
		return 0; /* there may be more: nothing is known to be missing */
	for (size_t i = first_behind(r, start); start < end; i++) {
		uintptr_t from = i < r->count ? r->at[i].start : end;
		uintptr_t to = i < r->count ? r->at[i].end : end;

		if (from > start)
			opaque += look_into_parents(start, tm_bits_min(from, end), see);
		if (from < end && which == TM_SCAN_ZONE)
			tm_scan_memory_words(from > start ? from : start, tm_bits_min(to, end),
					     see);
		start = to;
	}
	return opaque;
}

static void note_range(const struct tm_maps_line *line, void *arg)
{
	bool zone = line->end > tm_zone.base && line->start < tm_zone.base + tm_zone.len;
	struct ranges *r = zone ? &memory.present : &memory.mine;
	struct range *last = r->count != 0 ? &r->at[r->count - 1] : NULL;

	(void)arg;
	if (zone && !line->readable)
		return;
	if (last != NULL && last->end == line->start)
		last->end = line->end;
	else if (r->count < RANGES_MAX)
		r->at[r->count++] = (struct range){line->start, line->end};
}

int tm_scan_memory_begin(char *room)
{
	const size_t bytes = RANGES_MAX * sizeof(struct range);

	memory.present = (struct ranges){(struct range *)(void *)room, 0};
	memory.mine = (struct ranges){(struct range *)(void *)(room + bytes), 0};
	memory.parent = tm_syscall6(SYS_getppid, 0, 0, 0, 0, 0, 0);
	int rc = tm_maps_each_of(&(struct tm_maps_source){"/proc/self/maps", room + 2 * bytes},
				 note_range, NULL);

	memory.copy = tm_mem_map(COPY_BYTES);
	return rc;
}
