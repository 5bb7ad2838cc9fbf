/* SPDX-License-Identifier: MIT */
#include "shim/ledger/ledger_areas.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <time.h>

#include "shim/base/bits.h"
#include "shim/heap/account.h"
#include "shim/heap/heap.h"
#include "shim/heap/store.h"
#include "shim/ledger/ledger.h"
#include "shim/ledger/ledger_granules.h"
#include "shim/ledger/samples.h"
#include "shim/os/lock.h"
#include "shim/os/mem.h"
#include "shim/os/msg.h"
#include "shim/os/sys.h"

/* Retries, 1 ms apart, while the kernel is temporarily out of memory. */
#define ASKED_AGAIN 20u
/*
 * Granule records and tables are populated in pieces of this size. Small, because a thousand child
 * processes may each have a file with little in every table.
 */
#define WINDOW_BYTES TM_PAGE_BYTES
#define STEP_BYTES TM_PAGE_BYTES
/* Side entries in larger pieces, growing with their number; at least those of one span. */
#define CHUNK_FIRST_BYTES ((size_t)16 << 10)
/* A tmpfs with huge pages reports a larger block size than this. */
#define HUGE_BYTES_MIN ((long)1 << 20)
#define STEPS (TM_LEDGER_TABLES_BYTES / STEP_BYTES)
#define RECORDS_BYTES (TM_LEDGER_GRANULES * sizeof(struct tm_ledger_granule))
#define WINDOWS (RECORDS_BYTES / WINDOW_BYTES)
/* Distance from the heaps and their rows, which may take 2 GiB of address space. */
#define RECORDS_DISTANCE ((uintptr_t)3 << 30)
#define SIDES_DISTANCE ((uintptr_t)4 << 30)
/* Address space is mapped in steps, so that VmSize stays close to the use. */
#define ROWS_STEP (8 * TM_HEAP_STRIDE)
#define RECORDS_STEP ((size_t)256 << 10)
#define SIDES_STEP ((size_t)2 << 20)

_Static_assert(sizeof(struct tm_ledger_row) == sizeof(struct tm_row), "rows are written in place");
_Static_assert(TM_LEDGER_ROWS_STRIDE == TM_HEAP_STRIDE, "rows of a heap fill a stride");

/* An area of the file, mapped from its begin on and grown in place. */
struct area {
	uintptr_t at;
	size_t mapped, limit; /* [lock] */
	size_t step;
	bool stuck; /* [lock] can't grow any more */
};

static struct tm_lock lock = TM_LOCK_INIT(TM_RANK_LEDGER);
static struct tm_ledger_header *header_at; /* NULL: no ledger */

static struct {
	struct area rows, records, sides;
	uint64_t window[WINDOWS / 64 + 1];            /* [lock] of records, populated */
	uint64_t step[STEPS / 64];                    /* [lock] of tables, populated */
	uint64_t sides_offset;                        /* of sides.at in the file's area */
	size_t sides_used;                            /* [lock] bytes from sides.at */
	struct tm_side_chunk chunk[TM_LEDGER_CHUNKS]; /* from before, now in the file, by offset */
	uint64_t bytes, limit;                        /* [lock] populated; may be */
	int advice; /* madvise against read-ahead and huge pages; 0: none */
	const char *path;
	enum tm_msg_level level; /* of the message that the file is full */
	bool full;               /* [lock] the file can't grow any more */
} ledger;

/* --- room ------------------------------------------------------------------------------------- */

/* [lock] */
static void say_full(const char *why)
{
	if (ledger.full)
		return;
	ledger.full = true;
	tm_msg(ledger.level, "the ledger '%s' %s: what follows is counted in private memory",
	       ledger.path, why);
}

/*
 * At a control group's limit the kernel refuses pages, and page tables, until a process was killed
 * or has freed memory: retries for a while.
 */
static bool is_worth_another(int rc, unsigned *tries)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	if (rc != -ENOMEM || ++*tries > ASKED_AGAIN)
		return false;
	tm_sys_nanosleep(&pause);
	return true;
}

/*
 * Without MADV_POPULATE_WRITE (Linux before 5.14, emulations of Linux) a no-op futex operation
 * makes the kernel write a word of each page: it fails where a store of ours would raise SIGBUS.
 */
static int make_resident(void *at, size_t bytes)
{
	static _Atomic uint32_t nobody_waits;
	int rc = tm_mem_populate_write(at, bytes);
	if (rc != -EINVAL)
		return rc;
	for (size_t i = 0; i < bytes; i += TM_PAGE_BYTES) {
		rc = (int)tm_syscall6(SYS_futex, (long)(uintptr_t)&nobody_waits,
				      FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0,
				      (long)(uintptr_t)at + (long)i,
				      FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 0));
		if (rc < 0)
			return rc;
	}
	return 0;
}

/*
 * [lock] Everything is populated before it is written: on a full file system a store raises SIGBUS.
 */
static bool populate(void *at, size_t bytes)
{
	unsigned tries = 0;
	int rc;
	if (ledger.full)
		return false;
	if (ledger.bytes + bytes > ledger.limit) {
		say_full("has used its share");
		return false;
	}
	do
		rc = make_resident(at, bytes);
	while (is_worth_another(rc, &tries));
	if (rc != 0) {
		say_full("has no room");
		return false;
	}
	ledger.bytes += bytes;
	return true;
}

/* [lock] Extends the mapping up to this address. */
static bool reach(struct area *a, uintptr_t end)
{
	size_t wanted = (end - a->at + a->step - 1) / a->step * a->step;
	unsigned tries = 0;
	int rc = -EFBIG;
	if (end <= a->at + a->mapped)
		return true;
	if (!a->stuck && wanted <= a->limit)
		do
			rc = tm_mem_extend((void *)a->at, a->mapped, wanted);
		while (is_worth_another(rc, &tries));
	if (rc != 0) {
		a->stuck = true;
		return false;
	}
	a->mapped = wanted;
	return true;
}

void tm_ledger_look(int fd)
{
	struct statfs fs;
	struct stat st;
	ledger.advice = 0;
	if (tm_syscall6(SYS_fstatfs, fd, (long)(uintptr_t)&fs, 0, 0, 0, 0) != 0)
		return;
	if (fs.f_type != TMPFS_MAGIC)
		ledger.advice = MADV_RANDOM;
	else if (tm_sys_fstat(fd, &st) == 0 && st.st_blksize > HUGE_BYTES_MIN)
		ledger.advice = MADV_NOHUGEPAGE;
}

void tm_ledger_advise(void *at, size_t bytes)
{
	(void)tm_mem_dontdump(at, bytes);
	if (ledger.advice != 0)
		(void)tm_sys_madvise(at, bytes, ledger.advice);
}

static int map_area(struct area *a, int fd, uint64_t offset)
{
	long p = tm_sys_mmap((void *)a->at, a->step, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, fd, (long)offset);
	a->mapped = 0;
	a->stuck = false;
	if (tm_sys_is_error(p))
		return (int)p;
	if (p != (long)a->at) {
		tm_mem_unmap_raw((void *)p, a->step);
		return -EEXIST;
	}
	tm_ledger_advise((void *)a->at, a->step); /* stays so when it grows */
	a->mapped = a->step;
	return 0;
}

static void unmap_area(struct area *a)
{
	if (a->mapped != 0)
		tm_mem_unmap_raw((void *)a->at, a->mapped);
	a->mapped = 0;
}

/*
 * --- rows and side entries ---------------------------------------------------------------------
 */

static int map_rows(uintptr_t at, uint32_t heap_index)
{
	int rc = 0;
	tm_lock_acquire(&lock);
	if (at < ledger.rows.at || !reach(&ledger.rows, at + TM_HEAP_STRIDE)) {
		rc = tm_mem_map_at((void *)at, TM_HEAP_STRIDE, PROT_READ | PROT_WRITE);
	} else if (!populate((void *)at, TM_PAGE_BYTES)) {
		/* on failure only this heap's rows are private */
		ledger.rows.stuck = true;
		rc = tm_mem_map_fixed((void *)at, TM_HEAP_STRIDE, PROT_READ | PROT_WRITE);
	} else {
		tm_ledger_heap_has_rows(heap_index);
	}
	tm_lock_release(&lock);
	return rc;
}

void tm_ledger_heap_has_rows(uint32_t heap_index)
{
	uint64_t seen = __atomic_load_n(&header_at->heaps, __ATOMIC_RELAXED);
	while (seen <= heap_index &&
	       !__atomic_compare_exchange_n(&header_at->heaps, &seen, heap_index + 1, true,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

static bool need_rows(uintptr_t rows, size_t bytes)
{
	bool ok;
	/* rows are added one by one: populate only at the first byte of a page */
	if (bytes % TM_PAGE_BYTES != 0)
		return true;
	tm_lock_acquire(&lock);
	ok = make_resident((void *)(rows + bytes), TM_PAGE_BYTES) == 0;
	ledger.bytes += TM_PAGE_BYTES;
	tm_lock_release(&lock);
	return ok;
}

static void *side_chunk(size_t *ret_bytes)
{
	char *at = NULL;
	size_t bytes;
	tm_lock_acquire(&lock);
	bytes = tm_bits_min(*ret_bytes, tm_bits_max(ledger.sides_used, CHUNK_FIRST_BYTES));
	if (!ledger.full && reach(&ledger.sides, ledger.sides.at + ledger.sides_used + bytes)) {
		at = (char *)ledger.sides.at + ledger.sides_used;
		ledger.sides_used += bytes;
		if (!populate(at, bytes))
			at = NULL;
	}
	if (at == NULL)
		__atomic_fetch_add(&header_at->private_bytes, *ret_bytes, __ATOMIC_RELAXED);
	else
		*ret_bytes = bytes;
	tm_lock_release(&lock);
	return at;
}

bool tm_ledger_populate(void *at, size_t bytes)
{
	bool ok;
	tm_lock_acquire(&lock);
	ok = populate(at, bytes);
	tm_lock_release(&lock);
	return ok;
}

/* Offset of these side entries in the sides area. False: not in the file. */
bool tm_ledger_side_offset(const void *side, uint64_t *ret_offset)
{
	uintptr_t at = (uintptr_t)side;
	if (at >= ledger.sides.at && at < ledger.sides.at + ledger.sides_used) {
		*ret_offset = ledger.sides_offset + (at - ledger.sides.at);
		return true;
	}
	for (unsigned i = 0; i < TM_LEDGER_CHUNKS; i++) {
		uintptr_t chunk = (uintptr_t)ledger.chunk[i].at;
		if (chunk != 0 && at >= chunk && at < chunk + ledger.chunk[i].bytes) {
			*ret_offset = i * TM_SIDE_CHUNK_BYTES + (at - chunk);
			return true;
		}
	}
	return false;
}

uint64_t tm_ledger_sides_bytes(void)
{
	return ledger.sides_offset + ledger.sides_used;
}

/* --- tables ----------------------------------------------------------------------------------- */

static bool has_step(size_t n)
{
	return (__atomic_load_n(&ledger.step[n / 64], __ATOMIC_ACQUIRE) >> (n % 64) & 1) != 0;
}

/* [lock] Populates the missing steps from `first` on, up to the next one that is populated. */
static bool populate_steps(size_t first, size_t last)
{
	size_t end = first;
	while (end <= last && !has_step(end))
		end++;
	if (end == first)
		return true;
	if (!populate((char *)header_at + first * STEP_BYTES, (end - first) * STEP_BYTES))
		return false;
	for (size_t n = first; n < end; n++)
		__atomic_fetch_or(&ledger.step[n / 64], UINT64_C(1) << (n % 64), __ATOMIC_RELEASE);
	return true;
}

void *tm_ledger_area(uint64_t offset, size_t bytes)
{
	char *at = (char *)header_at + offset;
	size_t last = (offset + bytes - 1) / STEP_BYTES;
	bool ok = true;
	if (header_at == NULL || bytes == 0)
		return NULL;
	for (size_t n = offset / STEP_BYTES; ok && n <= last; n++) {
		if (has_step(n))
			continue;
		tm_lock_acquire(&lock);
		ok = populate_steps(n, last);
		tm_lock_release(&lock);
	}
	return ok ? at : NULL;
}

TM_AT_START_CODE struct tm_ledger_header *tm_ledger_header(void)
{
	return header_at;
}

/* --- records of granules ---------------------------------------------------------------------- */

/* [lock] */
static bool populate_window(size_t w)
{
	char *at = (char *)ledger.records.at + w * WINDOW_BYTES;
	if ((ledger.window[w / 64] >> (w % 64) & 1) != 0)
		return true;
	if (!reach(&ledger.records, (uintptr_t)at + WINDOW_BYTES) || !populate(at, WINDOW_BYTES))
		return false;
	__atomic_fetch_or(&ledger.window[w / 64], UINT64_C(1) << (w % 64), __ATOMIC_RELEASE);
	return true;
}

static bool is_populated(size_t w)
{
	return (__atomic_load_n(&ledger.window[w / 64], __ATOMIC_ACQUIRE) >> (w % 64) & 1) != 0;
}

static TM_NOINLINE struct tm_ledger_granule *new_record_of(size_t index, size_t first, size_t last)
{
	bool ok = true;
	for (size_t w = first; ok && w <= last; w++) {
		if (is_populated(w))
			continue;
		tm_lock_acquire(&lock);
		ok = populate_window(w);
		tm_lock_release(&lock);
	}
	if (!ok)
		return NULL;
	uint64_t seen = __atomic_load_n(&header_at->granules, __ATOMIC_RELAXED);
	while (seen <= index &&
	       !__atomic_compare_exchange_n(&header_at->granules, &seen, index + 1, true,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	return (struct tm_ledger_granule *)ledger.records.at + index;
}

struct tm_ledger_granule *tm_ledger_record(const struct tm_granule *head)
{
	size_t index = (size_t)(head - tm_zone.granules);
	size_t at = index * sizeof(struct tm_ledger_granule);
	size_t first = at / WINDOW_BYTES;
	size_t last = (at + sizeof(struct tm_ledger_granule) - 1) / WINDOW_BYTES;

	if (header_at == NULL)
		return NULL;
	if (TM_LIKELY(index < __atomic_load_n(&header_at->granules, __ATOMIC_RELAXED) &&
		      is_populated(first) && (last == first || is_populated(last))))
		return (struct tm_ledger_granule *)(ledger.records.at + at);
	return new_record_of(index, first, last);
}

/* --- begin and end ---------------------------------------------------------------------------- */

int tm_ledger_map(int fd, const struct tm_ledger_start *start)
{
	uintptr_t base = tm_heap_base();
	long p;
	int rc;

	/* skip pages without content, so that they aren't touched */
	for (size_t i = 0; i < TM_ARRAY_LEN(ledger.window); i++)
		if (ledger.window[i] != 0)
			ledger.window[i] = 0;
	__builtin_memset(ledger.step, 0, sizeof(ledger.step));
	__builtin_memset(ledger.chunk, 0, sizeof(ledger.chunk));
	ledger.path = start->path;
	ledger.limit = start->limit_bytes;
	ledger.level = start->level;
	ledger.bytes = 0;
	ledger.full = false;
	ledger.sides_used = 0;
	ledger.sides_offset = start->chunks * TM_SIDE_CHUNK_BYTES;
	ledger.rows = (struct area){.at = base + TM_ROWS_OFFSET + start->heaps * TM_HEAP_STRIDE,
				    .limit = TM_ROWS_OFFSET - start->heaps * TM_HEAP_STRIDE,
				    .step = ROWS_STEP};
	ledger.records = (struct area){
		.at = base + RECORDS_DISTANCE, .limit = RECORDS_BYTES, .step = RECORDS_STEP};
	ledger.sides = (struct area){.at = start->sides_at,
				     .limit = base + SIDES_DISTANCE + TM_LEDGER_SIDES_BYTES -
					      start->sides_at - ledger.sides_offset,
				     .step = SIDES_STEP};
	rc = map_area(&ledger.rows, fd, TM_LEDGER_ROWS_AT + start->heaps * TM_HEAP_STRIDE);
	if (rc == 0)
		rc = map_area(&ledger.records, fd, TM_LEDGER_GRANULES_AT);
	if (rc == 0)
		rc = map_area(&ledger.sides, fd, TM_LEDGER_SIDES_AT + ledger.sides_offset);
	if (rc == 0) {
		p = tm_sys_mmap(NULL, TM_LEDGER_TABLES_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
				fd, 0);
		rc = tm_sys_is_error(p) ? (int)p : 0;
		if (rc == 0) {
			tm_ledger_advise((void *)p, TM_LEDGER_TABLES_BYTES);
			rc = make_resident((void *)p, STEP_BYTES);
		}
		if (rc == 0) {
			ledger.step[0] = 1;
			__atomic_store_n(&header_at, (struct tm_ledger_header *)p,
					 __ATOMIC_RELEASE);
			return 0;
		}
		if (!tm_sys_is_error(p))
			tm_mem_unmap_raw((void *)p, TM_LEDGER_TABLES_BYTES);
	}
	unmap_area(&ledger.rows);
	unmap_area(&ledger.records);
	unmap_area(&ledger.sides);
	return rc;
}

TM_AT_START_CODE uintptr_t tm_ledger_sides_begin(void)
{
	return tm_heap_base() + SIDES_DISTANCE;
}

void tm_ledger_adopt_chunk(unsigned index, struct tm_side_chunk chunk)
{
	ledger.chunk[index] = chunk;
}

/*
 * Hooks are set one by one in this order, since other threads may already call those that are set.
 */
void tm_ledger_hook(void)
{
	struct tm_account_store *s = &tm_account_store;

	__atomic_store_n(&s->map_rows, map_rows, __ATOMIC_RELEASE);
	__atomic_store_n(&s->need_rows, need_rows, __ATOMIC_RELEASE);
	__atomic_store_n(&s->side_chunk, side_chunk, __ATOMIC_RELEASE);
	__atomic_store_n(&s->gone, tm_ledger_note_gone, __ATOMIC_RELEASE);
	__atomic_store_n(&s->span, tm_ledger_note_span, __ATOMIC_RELEASE);
	__atomic_store_n(&s->block, tm_ledger_note_block, __ATOMIC_RELEASE);
}

static void make_private(void *at, size_t bytes)
{
	if (bytes != 0)
		tm_mem_map_fixed(at, bytes, PROT_READ | PROT_WRITE);
}

/* Runs of bits as pieces of memory. */
static void each_run(const uint64_t *bits, size_t count, char *at, size_t bytes,
		     tm_ledger_piece_fn *visit, void *arg)
{
	for (size_t i = 0, end; i < count; i = end + 1) {
		for (end = i; end < count && (bits[end / 64] >> (end % 64) & 1) != 0; end++)
			;
		if (end > i)
			visit(at + i * bytes, (end - i) * bytes, arg);
	}
}

void tm_ledger_each_piece(tm_ledger_piece_fn *visit, void *arg)
{
	for (const struct tm_heap *h = tm_heap_first(); h != NULL; h = h->next)
		visit((char *)tm_heap_rows((uintptr_t)h),
		      tm_bits_align_up(h->rows * sizeof(struct tm_row), TM_PAGE_BYTES), arg);
	each_run(ledger.window, tm_bits_min(ledger.records.mapped / WINDOW_BYTES, WINDOWS),
		 (char *)ledger.records.at, WINDOW_BYTES, visit, arg);
	if (ledger.sides_used != 0)
		visit((char *)ledger.sides.at, ledger.sides_used, arg);
	for (unsigned i = 0; i < TM_LEDGER_CHUNKS; i++)
		if (ledger.chunk[i].at != NULL)
			visit(ledger.chunk[i].at, ledger.chunk[i].bytes, arg);
	each_run(ledger.step, STEPS, (char *)header_at, STEP_BYTES, visit, arg);
}

void tm_ledger_keep_in_child(void)
{
	make_private((void *)ledger.rows.at, ledger.rows.mapped);
	make_private((void *)ledger.records.at, ledger.records.mapped);
	make_private((void *)ledger.sides.at, ledger.sides.mapped);
	for (unsigned i = 0; i < TM_LEDGER_CHUNKS; i++)
		if (ledger.chunk[i].at != NULL)
			make_private(ledger.chunk[i].at, ledger.chunk[i].bytes);
	make_private(header_at, TM_LEDGER_TABLES_BYTES);
}

uintptr_t tm_ledger_unmap_in_child(void)
{
	uintptr_t rows_end = tm_heap_base() + TM_ROWS_OFFSET + tm_heap_count() * TM_HEAP_STRIDE;
	size_t used = rows_end > ledger.rows.at ? rows_end - ledger.rows.at : 0;
	uintptr_t sides_end = ledger.sides.at + ledger.sides.mapped;

	/* first nothing may point into the parent's file; then the hooks are removed */
	used = tm_bits_min(used, ledger.rows.mapped);
	make_private((void *)ledger.rows.at, used);
	if (ledger.rows.mapped > used)
		tm_mem_unmap_raw((void *)(ledger.rows.at + used), ledger.rows.mapped - used);
	make_private((void *)ledger.sides.at, ledger.sides.mapped);
	for (unsigned i = 0; i < TM_LEDGER_CHUNKS; i++)
		if (ledger.chunk[i].at != NULL)
			make_private(ledger.chunk[i].at, ledger.chunk[i].bytes);
	unmap_area(&ledger.records);
	tm_mem_unmap_raw(header_at, TM_LEDGER_TABLES_BYTES);
	header_at = NULL;
	return sides_end;
}

TM_AT_START_CODE void tm_ledger_areas_init(void)
{
	tm_lock_register(&lock);
}
