/* SPDX-License-Identifier: MIT */
#include "shim/sheet.h"

#include <time.h>

#include "shim/heap/zone.h"
#include "shim/helper.h"
#include "shim/ledger.h"
#include "shim/os/maps.h"
#include "shim/os/proc.h"
#include "shim/os/sys.h"

/* One part in so many of the time; while memory grows. */
#define SHARE 400u
#define SHARE_GROWN 100u
/* A thread of the program's waits no longer than this. */
#define CALLER_NS UINT64_C(3000000)
/* What a page costs the kernel, while it is not known better. */
#define PAGE_NS 10u
#define CHANGE 8u
/* Memory that changes while it is summed up is summed up again, where the sums are apart by a hundredth. */
#define AGREES_SHARE 100u
#define TRIES 3u

/* [lock of samples.c] */
static struct {
	uint64_t at_ms, rss_bytes; /* of the last one */
	uint64_t cost_ns;          /* 0: there was none yet */
	uint64_t not_before_ms, grown_not_before_ms;
	struct tm_maps_resident zone;
} last;

void tm_sheet_begin(void)
{
	__builtin_memset(&last, 0, sizeof(last));
}

uint64_t tm_sheet_resident_bytes(void)
{
	return last.zone.resident_bytes;
}

uint64_t tm_sheet_huge_bytes(void)
{
	return last.zone.huge_bytes;
}

/* By this thread: on a busy machine time passes that it costs nobody. */
static uint64_t spent_ns(void)
{
	struct timespec t = {0, 0};

	(void)tm_sys_clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Between the two sums the kernel gave while it was made. */
static uint64_t nearest(uint64_t bytes, uint64_t a, uint64_t b)
{
	uint64_t least = a < b ? a : b, most = a < b ? b : a;

	return bytes < least ? least : bytes > most ? most : bytes;
}

/* The text, as much of it as fits, in the sheet that is not the last. NULL: there is none. */
static struct tm_ledger_sheet *write_text(unsigned which, struct tm_maps_sheet *ret_text)
{
	const size_t room = TM_LEDGER_SHEET_BYTES - sizeof(struct tm_ledger_sheet);
	struct tm_ledger_sheet *s;

	/* Most are short: the file is populated for as much as is needed. */
	for (size_t bytes = (size_t)8 << 10;; bytes *= 4) {
		if (bytes > room)
			bytes = room;
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
	uint64_t n = header->sheets, before, rss;
	struct tm_maps_sheet text;
	struct tm_ledger_sheet *s;

	/* Under a filter of the program's own no call is made that it need not list (H68). */
	if (!tm_proc_may_open())
		return;
	before = spent_ns();
	for (unsigned tries = 0;;) {
		uint64_t rss_before = tm_proc_memory().rss_bytes;

		s = write_text(n % 2, &text);
		if (s == NULL)
			return;
		rss = nearest(text.resident_bytes, rss_before, tm_proc_memory().rss_bytes);
		if (agrees(rss, text.resident_bytes) || ++tries == TRIES)
			break;
	}
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
	uint64_t expected_ns = rss_bytes / 4096 * PAGE_NS;

	if (!tm_proc_may_open() || !is_due(now_ms, rss_bytes, pause_ms))
		return;
	if (last.cost_ns != 0)
		expected_ns = last.cost_ns / (last.rss_bytes / 1024 + 1) * (rss_bytes / 1024 + 1);
	if (expected_ns > CALLER_NS && tm_sys_gettid() != tm_helper_tid())
		return;
	tm_sheet_write(now_ms);
}
