/* SPDX-License-Identifier: MIT */
#include "shim/ledger/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "shim/base/parse.h"
#include "shim/boot.h"
#include "shim/heap/account.h"
#include "shim/heap/extent.h"
#include "shim/heap/heap.h"
#include "shim/heap/trim.h"
#include "shim/ledger/callsite.h"
#include "shim/ledger/deep.h"
#include "shim/ledger/epoch.h"
#include "shim/ledger/ledger_areas.h"
#include "shim/ledger/ledger_copy.h"
#include "shim/ledger/ledger_file.h"
#include "shim/ledger/ledger_granules.h"
#include "shim/ledger/modules.h"
#include "shim/ledger/python.h"
#include "shim/ledger/samples.h"
#include "shim/ledger/sheet.h"
#include "shim/ledger/sizes.h"
#include "shim/os/clock.h"
#include "shim/os/lock.h"
#include "shim/os/mem.h"
#include "shim/os/proc.h"
#include "shim/os/sys.h"
#include "shim/scan/scan.h"

/* Default length of the leak tests' window. */
#define WINDOW_MS 60000u
/* A process that holds less gets no ledger unless requested. */
#define LATE_BYTES ((size_t)4 << 20)
/* A forked child gets none before this age: most exec another program soon. */
#define CHILD_MS 1000u
/* Its mappings begin at 16 MiB: nearly all unused, but counted where addresses are limited. */
#define ADDRESSES_MIN ((size_t)128 << 20)
#define FROM_NEED UINT64_MAX

enum state {
	STATE_NONE,      /* there will be no ledger */
	STATE_WATCHING,  /* created at the first slow path that finds it due */
	STATE_BEGINNING, /* some thread is creating it */
	STATE_ON,
};

static struct {
	uint32_t state; /* [atomic] enum state */
	bool asked_for; /* requested by the user: from boot on, and the file is kept */
	bool forked;    /* a forked child that has had no ledger of its own yet */
	struct tm_ledger_file file;
	uint32_t old_heaps;     /* heaps older than the ledger */
	char *staging;          /* mapping of their rows in the file */
	uintptr_t sides_at;     /* address of side entries for this process's next ledger */
	uint64_t not_before_ms; /* [atomic] FROM_NEED: CHILD_MS after it was first due */
} ledger TM_AT_FORK_DATA;

/* [owner of the heap] Rows of the old heaps that were moved into the file. */
static uint64_t rows_moved[TM_HEAP_LIMIT / 64];

/* --- whether ---------------------------------------------------------------------------------- */

static bool is_target(void)
{
	const struct tm_options *o = &tm_root.options;

	return o->target == NULL ||
	       tm_parse_glob_list(tm_str_of(o->target), tm_str_of(tm_root.program));
}

static bool is_asked_for(void)
{
	return tm_root.options.dir != NULL || tm_root.options.report > TM_REPORT_EXIT;
}

/*
 * An unrequested ledger must not endanger the process: an inherited seccomp filter may kill it for
 * a system call that is not allowed. Filters of container runtimes return an error instead.
 */
static bool may_make_files(void)
{
	struct tm_proc_status status;
	struct stat st;

	if (tm_proc_status(&status) != 0)
		return false;
	return status.seccomp == 0 || tm_sys_fstatat(AT_FDCWD, "/.dockerenv", &st, 0) == 0 ||
	       tm_sys_fstatat(AT_FDCWD, "/run/.containerenv", &st, 0) == 0;
}

static bool has_addresses(void)
{
	struct tm_sys_limit limit;

	return tm_sys_getrlimit(RLIMIT_AS, &limit) != 0 || limit.soft >= ADDRESSES_MIN;
}

/* --- what was there before -------------------------------------------------------------------- */

/*
 * Only if no other thread has a heap, and so could write side entries while they move. [heaps lock]
 */
static bool is_alone(const struct tm_heap *mine)
{
	unsigned others = 0;

	for (const struct tm_heap *h = tm_heap_first(); h != NULL; h = h->next)
		others += h != mine &&
			  atomic_load_explicit(&h->state, memory_order_relaxed) == TM_HEAP_OWNED;
	return others == 0;
}

/*
 * Moves the rows of the caller's own heap, or of an orphan, into the file, whose mapping then
 * replaces them. Its sites count as new again, so that their stacks are captured.
 */
static void move_rows(struct tm_heap *h)
{
	char *rows = (char *)tm_heap_rows((uintptr_t)h);
	char *to = ledger.staging + h->index * TM_HEAP_STRIDE;
	size_t bytes = (h->rows * sizeof(struct tm_row) + TM_PAGE_BYTES) & ~(TM_PAGE_BYTES - 1);

	rows_moved[h->index / 64] |= UINT64_C(1) << (h->index % 64);
	if (!tm_ledger_populate(to, bytes))
		return;
	__builtin_memcpy(to, rows, bytes);
	if (tm_mem_remap(to, TM_HEAP_STRIDE, TM_HEAP_STRIDE, rows) == NULL)
		return;
	tm_account_meet_anew(h);
	tm_ledger_heap_has_rows(h->index);
}

static bool has_moved(const struct tm_heap *h)
{
	return h->index >= ledger.old_heaps ||
	       (rows_moved[h->index / 64] >> (h->index % 64) & 1) != 0;
}

static void move_chunks(int fd, const struct tm_side_chunk *chunk, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		const size_t bytes = chunk[i].bytes;
		long p = tm_sys_mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				     (long)(TM_LEDGER_SIDES_AT + i * TM_SIDE_CHUNK_BYTES));

		if (tm_sys_is_error(p))
			return;
		tm_ledger_advise((void *)p, bytes);
		if (!tm_ledger_populate((void *)p, bytes)) {
			tm_mem_unmap_raw((void *)p, bytes);
			return;
		}
		__builtin_memcpy((void *)p, chunk[i].at, bytes);
		if (tm_mem_remap((void *)p, bytes, bytes, chunk[i].at) == NULL)
			return;
		tm_ledger_adopt_chunk(i, chunk[i]);
	}
}

/* --- begin ------------------------------------------------------------------------------------ */

static void write_maps(void)
{
	struct tm_ledger_header *header = tm_ledger_header();
	long n = 0;

	for (size_t room = (size_t)8 << 10; room <= TM_LEDGER_MAPS_BYTES; room *= 2) {
		char *text = tm_ledger_area(TM_LEDGER_MAPS_AT, room);

		if (text == NULL)
			break;
		n = tm_proc_read("/proc/self/maps", text, room);
		if (n < (long)room - 1)
			break;
	}
	__atomic_store_n(&header->maps_bytes, n < 0 ? 0 : (uint32_t)n, __ATOMIC_RELEASE);
}

static void write_header(void)
{
	const struct tm_options *o = &tm_root.options;
	struct tm_ledger_header *h = tm_ledger_header();

	tm_ledger_file_describe(h, &ledger.file);
	h->forked = ledger.forked;
	h->features = TM_LEDGER_HAS_STACKS | TM_LEDGER_HAS_TIERS | TM_LEDGER_HAS_SIZES |
		      (ledger.asked_for ? TM_LEDGER_STAYS : 0) |
		      (o->mode == TM_MODE_OBSERVE ? TM_LEDGER_OBSERVES : 0) |
		      (o->ledger >= TM_LEDGER_STACK ? TM_LEDGER_HAS_SAMPLES : 0);
	tm_sheet_begin();
	tm_python_describe(h);
	tm_deep_begin();
	tm_epoch_begin(o->leak_window_ms == TM_OPTION_AUTO ? WINDOW_MS
							   : (uint32_t)o->leak_window_ms);
	write_maps();
	__atomic_store_n(&h->magic, TM_LEDGER_MAGIC, __ATOMIC_RELEASE);
}

static void pass(const struct tm_heap *h, const struct tm_row *row, size_t bytes,
		 struct tm_site site)
{
	if (TM_UNLIKELY(!has_moved(h)) && h->tls_word == &tm_heap_word)
		move_rows((struct tm_heap *)(uintptr_t)h);
	if (tm_root.options.ledger >= TM_LEDGER_STACK)
		tm_callsite_sample(h, row, bytes, site);
	tm_samples_pass(bytes);
}

/* [trim lock, heaps lock] mine: the thread's heap, held by the caller; NULL at boot. */
static int begin_file(struct tm_heap *mine, int fd, struct tm_ledger_start *start)
{
	struct tm_side_chunk *chunk = NULL;
	bool alone = is_alone(mine);
	unsigned chunks = alone ? tm_account_side_chunks(&chunk) : 0;
	int rc;

	if (chunks > TM_LEDGER_CHUNKS)
		chunks = 0;
	tm_ledger_look(fd);
	start->heaps = ledger.old_heaps = tm_heap_count();
	start->chunks = chunks;
	start->sides_at = ledger.sides_at;
	__builtin_memset(rows_moved, 0, sizeof(rows_moved));
	ledger.staging = NULL;
	if (ledger.old_heaps != 0) {
		long p =
			tm_sys_mmap(NULL, ledger.old_heaps * TM_HEAP_STRIDE, PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_NORESERVE, fd, (long)TM_LEDGER_ROWS_AT);

		if (tm_sys_is_error(p))
			return (int)p;
		ledger.staging = (char *)p;
		tm_ledger_advise(ledger.staging, ledger.old_heaps * TM_HEAP_STRIDE);
	}
	rc = tm_ledger_map(fd, start);
	if (rc != 0) {
		if (ledger.staging != NULL)
			tm_mem_unmap_raw(ledger.staging, ledger.old_heaps * TM_HEAP_STRIDE);
		return rc;
	}
	write_header();
	/* before anything is shared that the child of a raw fork must not use */
	tm_heap_wipe_on_fork(TM_HEAP_WIPE);
	tm_ledger_hook();
	if (chunks != 0)
		move_chunks(fd, chunk, chunks);
	else
		tm_account_side_leave();
	for (struct tm_heap *h = tm_heap_first(); h != NULL; h = h->next)
		if (h == mine || alone)
			move_rows(h);
	tm_ledger_publish();
	tm_samples_refused();
	__atomic_store_n(&tm_account_store.site, tm_callsite_new, __ATOMIC_RELEASE);
	__atomic_store_n(&tm_account_store.sample, pass, __ATOMIC_RELEASE);
	return 0;
}

static void begin(struct tm_heap *mine)
{
	char directory[128];
	const char *named = tm_root.options.dir;
	const uint64_t all = UINT64_MAX;
	uint64_t old = 0;
	struct tm_ledger_start start = {.path = ledger.file.path,
					.level = ledger.asked_for ? TM_MSG_WARN : TM_MSG_INFO};
	int fd, rc;

	if (named == NULL)
		tm_ledger_file_default(directory, sizeof(directory));
	/* a signal handler that frees would write side entries that are being moved */
	tm_sys_sigprocmask(0 /* SIG_BLOCK */, &all, &old);
	fd = tm_ledger_file_create(&ledger.file, named != NULL ? named : directory,
				   named != NULL ? TM_LEDGER_ROOM_ASKED : TM_LEDGER_ROOM_SHARED);
	rc = fd;
	if (fd >= 0) {
		start.limit_bytes = ledger.file.limit_bytes;
		tm_trim_lock();
		tm_heap_lock();
		rc = begin_file(mine, fd, &start);
		tm_heap_unlock();
		tm_trim_unlock();
		tm_sys_close(fd);
		if (rc != 0)
			tm_sys_unlinkat(AT_FDCWD, ledger.file.path, 0);
	}
	tm_sys_sigprocmask(2 /* SIG_SETMASK */, &old, NULL);
	if (rc < 0) {
		tm_msg(start.level,
		       "no ledger '%s' (%s, error %d): the account is kept in memory only",
		       ledger.file.path,
		       ledger.file.why != NULL ? ledger.file.why : tm_msg_reason(-rc), -rc);
		__atomic_store_n(&tm_account_store.sample, NULL, __ATOMIC_RELEASE);
	} else if (mine != NULL) {
		tm_msg(TM_MSG_INFO, "process %d now has the ledger '%s'", (int)ledger.file.pid,
		       ledger.file.path);
	}
	__atomic_store_n(&ledger.state, rc < 0 ? STATE_NONE : STATE_ON, __ATOMIC_RELEASE);
}

static bool is_too_early(void)
{
	uint64_t not_before = __atomic_load_n(&ledger.not_before_ms, __ATOMIC_RELAXED);
	uint64_t now = tm_clock_ms();

	if (not_before == FROM_NEED)
		__atomic_store_n(&ledger.not_before_ms, now + CHILD_MS, __ATOMIC_RELAXED);
	return now < not_before;
}

/* tm_account_store.sample while there is no ledger: creates one if it is due. */
static void watch(const struct tm_heap *h, const struct tm_row *row, size_t bytes,
		  struct tm_site site)
{
	uint32_t expected = STATE_WATCHING;

	(void)row;
	(void)bytes;
	(void)site;
	if (!ledger.asked_for && tm_extent_used_bytes() < LATE_BYTES)
		return;
	/*
	 * not with the shared heap (a thread past its end), nor in a vfork child: not the caller's
	 * own
	 */
	if (h->tls_word != &tm_heap_word || is_too_early() ||
	    (tm_proc_may_open() && (uint32_t)tm_sys_getpid() != ledger.file.pid))
		return;
	if (!__atomic_compare_exchange_n(&ledger.state, &expected, STATE_BEGINNING, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	if (!tm_proc_may_open() || (!ledger.asked_for && (!may_make_files() || !has_addresses()))) {
		__atomic_store_n(&tm_account_store.sample, NULL, __ATOMIC_RELEASE);
		__atomic_store_n(&ledger.state, STATE_NONE, __ATOMIC_RELEASE);
		return;
	}
	begin((struct tm_heap *)(uintptr_t)h);
}

static TM_AT_START_CODE void start_watching(void)
{
	ledger.file.pid = (uint32_t)tm_sys_getpid();
	ledger.state = STATE_WATCHING;
	tm_account_store.sample = watch;
}

TM_AT_START_CODE void tm_ledger_init(void)
{
	if (tm_root.options.ledger == TM_LEDGER_OFF)
		return;
	tm_ledger_areas_init();
	tm_modules_init();
	tm_samples_init();
	tm_sizes_init();
	tm_deep_init();
	if (tm_root.secure || !is_target())
		return;
	ledger.sides_at = tm_ledger_sides_begin();
	ledger.asked_for = is_asked_for();
	if (ledger.asked_for)
		begin(NULL);
	else
		start_watching();
}

TM_AT_START_CODE bool tm_ledger_is_on(void)
{
	return tm_ledger_header() != NULL;
}

bool tm_ledger_is_asked_for(void)
{
	return ledger.asked_for && tm_ledger_is_on();
}

const char *tm_ledger_path(void)
{
	return tm_ledger_is_on() ? ledger.file.path : NULL;
}

const char *tm_ledger_why_none(void)
{
	if (tm_root.options.ledger == TM_LEDGER_OFF)
		return "TIERMALLOC_LEDGER=off";
	if (tm_root.secure)
		return "the program has raised rights";
	if (!is_target())
		return "TIERMALLOC_TARGET names another program";
	return ledger.state == STATE_WATCHING ? "until it holds more than 4 MiB"
					      : "none could be made";
}

/* --- fork and end ----------------------------------------------------------------------------- */

TM_AT_START_CODE void tm_ledger_fork_prepare(void)
{
	if (tm_ledger_is_on())
		tm_heap_wipe_on_fork(TM_HEAP_KEEP);
}

TM_AT_START_CODE void tm_ledger_fork_parent(void)
{
	if (tm_ledger_is_on())
		tm_heap_wipe_on_fork(TM_HEAP_WIPE);
}

static void leave_parents_file(void)
{
	for (uint32_t i = 0; i < ledger.old_heaps; i++) {
		bool moved = (rows_moved[i / 64] >> (i % 64) & 1) != 0;
		uintptr_t rows = tm_heap_base() + TM_ROWS_OFFSET + i * TM_HEAP_STRIDE;

		if (moved)
			tm_mem_map_fixed((void *)rows, TM_HEAP_STRIDE, PROT_READ | PROT_WRITE);
		else
			tm_mem_unmap_raw(ledger.staging + i * TM_HEAP_STRIDE, TM_HEAP_STRIDE);
	}
	ledger.sides_at = tm_ledger_unmap_in_child();
	tm_callsite_fork_child();
	tm_scan_fork_child();
	tm_sizes_fork_child();
	tm_deep_fork_child();
	ledger.forked = true;
}

TM_AT_START_CODE void tm_ledger_fork_child(enum tm_ledger_child child)
{
	bool had = tm_ledger_is_on(), watching = ledger.state == STATE_WATCHING;

	if (had)
		leave_parents_file();
	if (!had && !watching)
		return;
	tm_account_store = (struct tm_account_store){.sample = NULL};
	ledger.state = STATE_NONE;
	/* after a raw fork the state of locks and heaps is unknown: count in private memory */
	if (child == TM_LEDGER_CHILD_RAW)
		return;
	/* don't read the clock: two page faults, in a child that is usually about to exec */
	ledger.not_before_ms = ledger.asked_for ? 0 : had ? tm_clock_ms() + CHILD_MS : FROM_NEED;
	start_watching();
}

void tm_ledger_fork_inside(void)
{
	for (uint32_t i = 0; i < ledger.old_heaps; i++) {
		bool moved = (rows_moved[i / 64] >> (i % 64) & 1) != 0;
		uintptr_t rows = tm_heap_base() + TM_ROWS_OFFSET + i * TM_HEAP_STRIDE;

		tm_mem_map_fixed(moved ? (void *)rows : ledger.staging + i * TM_HEAP_STRIDE,
				 TM_HEAP_STRIDE, PROT_READ | PROT_WRITE);
	}
	tm_ledger_keep_in_child();
	tm_ledger_copy_enter();
	/* as after any end, so that the child neither deletes nor reports the parent's file */
	tm_ledger_header()->clean_exit = 1;
	tm_scan_fork_child();
}

/*
 * Whether the caller owns the ledger: a vfork child that calls exit runs in its parent's memory.
 * Under a seccomp filter of the program, which may not allow the calls (H68), the file is kept.
 */
static TM_AT_START_CODE bool is_own(void)
{
	return tm_ledger_is_on() && tm_ledger_header()->clean_exit == 0 &&
	       (!tm_proc_may_open() || ledger.file.pid == (uint32_t)tm_sys_getpid());
}

/* Whether the file is kept at the end of the process: requested, or deleting is not allowed. */
static TM_AT_START_CODE bool stays(void)
{
	return ledger.asked_for || !tm_proc_may_open();
}

TM_AT_START_CODE void tm_ledger_end(void)
{
	if (!is_own())
		return;
	if (stays()) {
		write_maps();
		tm_samples_now();
	}
	tm_ledger_end_now();
}

TM_AT_START_CODE void tm_ledger_end_now(void)
{
	struct tm_ledger_header *header;

	if (!is_own())
		return;
	header = tm_ledger_header();
	header->ended_ms = tm_clock_ms();
	__atomic_store_n(&header->clean_exit, 1, __ATOMIC_RELEASE);
	if (!stays())
		tm_sys_unlinkat(AT_FDCWD, ledger.file.path, 0);
}
