/* SPDX-License-Identifier: MIT */
#include "shim/ledger/sheet.h"

#include <time.h>

#include "shim/base/bits.h"
#include "shim/base/fmt.h"
#include "shim/base/parse.h"
#include "shim/base/pymalloc.h"
#include "shim/boot.h"
#include "shim/heap/heap.h"
#include "shim/heap/zone.h"
#include "shim/helper.h"
#include "shim/ledger/ledger.h"
#include "shim/os/maps.h"
#include "shim/os/mem.h"
#include "shim/os/own.h"
#include "shim/os/proc.h"
#include "shim/os/sys.h"

/* Share of the time that sheets may take: 1/SHARE; while memory grows 1/SHARE_GROWN. */
#define SHARE 400u
#define SHARE_GROWN 100u
/* If a sheet is expected to take longer, only the helper makes it. */
#define CALLER_NS UINT64_C(1000000)
/* Assumed cost per page of the kernel's walk, until it has been measured. */
#define PAGE_NS 10u
#define CHANGE 8u
/* If memory changes during the walk, so that sums differ by more than 1 %, it is repeated. */
#define AGREES_SHARE 100u
#define TRIES 3u
#define TEXT_FIRST_BYTES ((size_t)8 << 10)

/* [lock of samples.c] */
static struct {
	uint64_t at_ms, rss_bytes; /* of the last sheet */
	uint64_t cost_ns;          /* CPU time that it took; 0: none was made yet */
	uint64_t not_before_ms, grown_not_before_ms;
	size_t text_room; /* space that its text took */
	struct tm_maps_resident zone;
} last;

/* Whether the process is a CPython. [lock of samples.c] */
static struct {
	bool known; /* it is one */
	uint32_t modules_seen;
	struct tm_pymalloc_room *room; /* while a sheet is written */
} python;

void tm_sheet_begin(void)
{
	__builtin_memset(&last, 0, sizeof(last));
	__builtin_memset(&python, 0, sizeof(python));
	tm_ledger_header()->own_mib = (uint32_t)((tm_zone.base - tm_heap_base()) >> 20);
}

uint64_t tm_sheet_resident_bytes(void)
{
	return last.zone.resident_bytes;
}

uint64_t tm_sheet_huge_bytes(void)
{
	return last.zone.huge_bytes;
}

/* CPU time of this thread: elapsed time would include waiting on a busy machine. */
static uint64_t spent_ns(void)
{
	struct timespec t = {0, 0};

	(void)tm_sys_clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* --- whose anonymous memory it is ------------------------------------------------------------- */

static uint64_t resident_bytes(uintptr_t start, uintptr_t end)
{
	unsigned char page[512];
	uint64_t sum = 0;

	while (start < end) {
		size_t pages = tm_bits_min((end - start) / TM_PAGE_BYTES, sizeof(page));

		if (pages == 0 || tm_sys_mincore((void *)start, pages * TM_PAGE_BYTES, page) != 0)
			break;
		for (size_t i = 0; i < pages; i++)
			sum += (page[i] & 1u) * TM_PAGE_BYTES;
		start += pages * TM_PAGE_BYTES;
	}
	return sum;
}

static void tell_own(struct tm_fmt_out *out, const struct tm_maps_range *range)
{
	uintptr_t at = range->start, end;

	if (at >= tm_heap_base() && at < tm_zone.base)
		return; /* header.own_mib says so */
	for (; tm_own_next(&at, range->end, &end); at = end)
		tm_fmt_add(out, "Own: %llx-%llx %llu kB\n", (unsigned long long)at,
			   (unsigned long long)end,
			   (unsigned long long)(resident_bytes(at, end) >> 10));
}

static bool look(uint64_t at, size_t pages, uint8_t *ret_resident, void *arg)
{
	(void)arg;
	return tm_sys_mincore((void *)(uintptr_t)at, pages * TM_PAGE_BYTES, ret_resident) == 0;
}

/* Reads by a system call, since another thread may unmap an arena meanwhile. */
static void read_headers(const uint64_t *at, size_t count, struct tm_pymalloc_header *ret,
			 void *arg)
{
	struct {
		uint64_t at, bytes;
	} remote[64], local;

	(void)arg;
	for (size_t i = 0, n; i < count; i += n) {
		n = tm_bits_min(count - i, TM_ARRAY_LEN(remote));
		for (size_t k = 0; k < n; k++) {
			remote[k].at = at[i + k];
			remote[k].bytes = sizeof(*ret);
		}
		local.at = (uintptr_t)&ret[i];
		local.bytes = n * sizeof(*ret);
		long got =
			tm_syscall6(SYS_process_vm_readv, tm_sys_getpid(), (long)(uintptr_t)&local,
				    1, (long)(uintptr_t)remote, (long)n, 0);
		size_t whole = got <= 0 ? 0 : (size_t)got / sizeof(*ret);

		if (whole < n) {
			__builtin_memset(&ret[i + whole], 0, sizeof(*ret));
			n = whole + 1;
		}
	}
}

static void tell_pymalloc(struct tm_fmt_out *out, const struct tm_maps_range *range)
{
	struct tm_pymalloc_source source = {look, read_headers, NULL, python.room};
	struct tm_pymalloc_sum sum = {0, 0};

	tm_pymalloc_look(&source, range->start, range->end, &sum);
	if (sum.pools_bytes != 0)
		tm_fmt_add(out, "Pymalloc: %llu kB %llu kB\n",
			   (unsigned long long)(sum.resident_bytes >> 10),
			   (unsigned long long)(sum.pools_bytes >> 10));
}

static void tell(struct tm_fmt_out *out, const struct tm_maps_range *range)
{
	tell_own(out, range);
	if (python.room != NULL)
		tell_pymalloc(out, range);
}

/* Detected by the program's name, or by a libpython among the modules. */
static bool is_python(void)
{
	uint32_t modules = __atomic_load_n(&tm_ledger_header()->modules, __ATOMIC_ACQUIRE);

	python.known = python.known || tm_str_starts(tm_str_of(tm_root.program), "python");
	for (; !python.known && python.modules_seen < modules; python.modules_seen++) {
		const struct tm_ledger_module *m = tm_ledger_area(
			TM_LEDGER_MODULES_AT + python.modules_seen * sizeof(*m), sizeof(*m));

		if (m == NULL || __atomic_load_n(&m->end, __ATOMIC_ACQUIRE) == 0)
			break;
		python.known =
			tm_parse_glob(tm_str_of("*/libpython*"),
				      (struct tm_str){m->path, m->path_bytes < sizeof(m->path)
								       ? m->path_bytes
								       : sizeof(m->path)});
	}
	return python.known;
}

/* --- the text --------------------------------------------------------------------------------- */

/* The reading of RSS, before or after the text was made, that is nearer to the text's sum. */
static uint64_t nearest(uint64_t bytes, uint64_t a, uint64_t b)
{
	uint64_t least = a < b ? a : b, most = a < b ? b : a;

	return bytes < least ? least : bytes > most ? most : bytes;
}

/*
 * Writes the text, as far as it fits, into the older of the two sheets. NULL: no ledger or space.
 */
static struct tm_ledger_sheet *write_text(unsigned which, struct tm_maps_sheet *ret_text)
{
	const size_t room = TM_LEDGER_SHEET_BYTES - sizeof(struct tm_ledger_sheet);
	struct tm_ledger_sheet *s;

	/* most texts are short: populates the file only as far as needed */
	for (size_t bytes = tm_bits_max(TEXT_FIRST_BYTES, last.text_room);; bytes *= 4) {
		bytes = tm_bits_min(bytes, room);
		last.text_room = bytes;
		s = tm_ledger_area(TM_LEDGER_SHEETS_AT + which * TM_LEDGER_SHEET_BYTES,
				   sizeof(*s) + bytes);
		if (s == NULL || tm_maps_write_sheet(s->text, bytes, tm_zone.base,
						     tm_zone.base + tm_zone.len, ret_text) != 0)
			return NULL;
		if (!ret_text->cut || bytes == room)
			return s;
	}
}

static bool agrees(uint64_t rss_bytes, uint64_t sum_bytes)
{
	uint64_t off = rss_bytes > sum_bytes ? rss_bytes - sum_bytes : sum_bytes - rss_bytes;

	return off <= rss_bytes / AGREES_SHARE;
}

void tm_sheet_write(uint64_t now_ms)
{
	struct tm_ledger_header *header = tm_ledger_header();
	uint64_t n = header->sheets, before, rss = 0;
	struct tm_maps_sheet text = {.tell = tell};
	struct tm_ledger_sheet *s;

	/* not under a seccomp filter of the program, which may not allow the calls (H68) */
	if (!tm_proc_may_open())
		return;
	before = spent_ns();
	python.room = is_python()
			      ? tm_mem_map(tm_bits_align_up(sizeof(*python.room), TM_PAGE_BYTES))
			      : NULL;
	for (unsigned tries = 0;;) {
		uint64_t rss_before = tm_proc_memory().rss_bytes;

		s = write_text(n % 2, &text);
		if (s == NULL)
			break;
		rss = nearest(text.resident_bytes, rss_before, tm_proc_memory().rss_bytes);
		if (agrees(rss, text.resident_bytes) || ++tries == TRIES)
			break;
	}
	if (python.room != NULL)
		tm_mem_unmap_raw(python.room,
				 tm_bits_align_up(sizeof(*python.room), TM_PAGE_BYTES));
	python.room = NULL;
	if (s == NULL)
		return;
	s->at_ms = now_ms;
	s->rss_bytes = rss;
	s->text_bytes = (uint32_t)text.bytes;
	s->cut = text.cut;
	__atomic_store_n(&header->sheets, n + 1, __ATOMIC_RELEASE);
	last.at_ms = now_ms;
	last.rss_bytes = rss;
	last.zone = text.within;
	last.cost_ns = spent_ns() - before;
	last.not_before_ms = now_ms + last.cost_ns * SHARE / 1000000;
	last.grown_not_before_ms = now_ms + last.cost_ns * SHARE_GROWN / 1000000;
}

static bool is_due(uint64_t now_ms, uint64_t rss_bytes, uint64_t pause_ms)
{
	const uint64_t eighth = last.rss_bytes / CHANGE;

	if (rss_bytes > last.rss_bytes + eighth)
		return now_ms >= last.grown_not_before_ms;
	if (now_ms < last.not_before_ms)
		return false;
	return now_ms - last.at_ms >= pause_ms || rss_bytes + eighth < last.rss_bytes;
}

void tm_sheet_tick(uint64_t now_ms, uint64_t rss_bytes, uint64_t pause_ms)
{
	/* a small process's cost is that of its mappings: only the pages that came since add to it */
	uint64_t grown = rss_bytes - tm_bits_min(rss_bytes, last.rss_bytes);
	uint64_t expected_ns = last.cost_ns + grown / 4096 * PAGE_NS;

	if (!tm_proc_may_open() || !is_due(now_ms, rss_bytes, pause_ms))
		return;
	if (expected_ns > CALLER_NS && tm_sys_gettid() != tm_helper_tid())
		return;
	tm_sheet_write(now_ms);
}
