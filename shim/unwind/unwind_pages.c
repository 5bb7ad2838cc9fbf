/* SPDX-License-Identifier: MIT */
/* unwind_pages: see unwind_pages.h. */
#include "shim/unwind/unwind_pages.h"

#include <fcntl.h>
#include <stdatomic.h>

#include "shim/base/bits.h"
#include "shim/base/hash.h"
#include "shim/os/mem.h"
#include "shim/os/proc.h"
#include "shim/os/sys.h"

/* Reads of an object between two looks: they map up to 64 KiB each, a look costs about 30 us. */
#define READS_A_LOOK 32u
/* Less than this is not worth a look. */
#define WORTH_BYTES ((uintptr_t)256 << 10)
#define OBJECTS_BITS 3

/* Of /proc/self/pagemap (Linux, Documentation/admin-guide/mm/pagemap.rst). */
#define PAGE_PRESENT (UINT64_C(1) << 63)
#define PAGE_SWAPPED (UINT64_C(1) << 62)
#define PAGE_OF_FILE (UINT64_C(1) << 61)

/* Approximate: objects that share a slot evict each other, racing threads may lose an update. */
static struct {
	_Atomic uintptr_t index;     /* address of its sorted index */
	_Atomic uintptr_t low, high; /* of the entries that were read */
	_Atomic uint32_t reads;
} objects[1u << OBJECTS_BITS];

bool tm_unwind_pages_are_clean(uintptr_t begin, uintptr_t end, uint64_t room[TM_UNWIND_PAGES_ROOM])
{
	size_t page = tm_proc_page_bytes();
	int fd = tm_sys_open("/proc/self/pagemap", O_RDONLY, 0);
	bool clean = fd >= 0;

	while (clean && begin < end) {
		size_t count = tm_bits_min((end - begin) / page, TM_UNWIND_PAGES_ROOM);

		clean = count != 0 && tm_sys_pread(fd, room, count * 8, (long)(begin / page * 8)) ==
					      (long)(count * 8);
		for (size_t i = 0; clean && i < count; i++)
			clean = (room[i] & PAGE_SWAPPED) == 0 &&
				((room[i] & PAGE_PRESENT) == 0 || (room[i] & PAGE_OF_FILE) != 0);
		begin += count * page;
	}
	if (fd >= 0)
		tm_sys_close(fd);
	return clean;
}

/* Refused (locked pages): they stay, which costs memory only. */
static void drop(uintptr_t begin, uintptr_t end, uint64_t room[TM_UNWIND_PAGES_ROOM])
{
	size_t page = tm_proc_page_bytes();

	begin = (begin + page - 1) & ~(page - 1);
	end &= ~(page - 1);
	if (begin < end && tm_unwind_pages_are_clean(begin, end, room))
		(void)tm_mem_dontneed_raw((void *)begin, end - begin);
}

void tm_unwind_pages_read(uintptr_t index, uintptr_t entry, uint64_t room[TM_UNWIND_PAGES_ROOM])
{
	size_t at = tm_hash_slot(index, OBJECTS_BITS);
	uintptr_t low, high;

	if (atomic_exchange_explicit(&objects[at].index, index, memory_order_relaxed) != index) {
		atomic_store_explicit(&objects[at].low, entry, memory_order_relaxed);
		atomic_store_explicit(&objects[at].high, entry, memory_order_relaxed);
		atomic_store_explicit(&objects[at].reads, 0, memory_order_relaxed);
	}
	low = tm_bits_min(atomic_load_explicit(&objects[at].low, memory_order_relaxed), entry);
	high = tm_bits_max(atomic_load_explicit(&objects[at].high, memory_order_relaxed), entry);
	atomic_store_explicit(&objects[at].low, low, memory_order_relaxed);
	atomic_store_explicit(&objects[at].high, high, memory_order_relaxed);
	if (atomic_fetch_add_explicit(&objects[at].reads, 1, memory_order_relaxed) + 1 <
		    READS_A_LOOK ||
	    high - low < WORTH_BYTES || !tm_proc_may_open())
		return;
	atomic_store_explicit(&objects[at].reads, 0, memory_order_relaxed);
	drop(low, high, room);
}
