/* SPDX-License-Identifier: MIT */
#include "shim/ledger.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "shim/base/fmt.h"
#include "shim/base/ledger_format.h"
#include "shim/base/parse.h"
#include "shim/boot.h"
#include "shim/callsite.h"
#include "shim/epoch.h"
#include "shim/heap/account.h"
#include "shim/heap/heap.h"
#include "shim/heap/span.h"
#include "shim/heap/store.h"
#include "shim/modules.h"
#include "shim/os/clock.h"
#include "shim/os/lock.h"
#include "shim/os/mem.h"
#include "shim/os/msg.h"
#include "shim/os/proc.h"
#include "shim/os/sys.h"
#include "shim/samples.h"

/* Granule records are populated in windows of this size. */
#define WINDOW_BYTES ((size_t)64 << 10)
/* And tables in smaller ones: most stay short. */
#define STEP_BYTES ((size_t)16 << 10)
#define STEPS (TM_LEDGER_TABLES_BYTES / STEP_BYTES)
/* Of the leak tests. */
#define WINDOW_MS 60000u
#define RECORDS_BYTES (TM_LEDGER_GRANULES * sizeof(struct tm_ledger_granule))
#define WINDOWS (RECORDS_BYTES / WINDOW_BYTES)
/* Behind the heaps and their rows, which take 2 GiB of addresses. */
#define RECORDS_DISTANCE ((uintptr_t)3 << 30)
#define SIDES_DISTANCE ((uintptr_t)4 << 30)

_Static_assert(sizeof(struct tm_ledger_row) == sizeof(struct tm_row), "rows are written in place");
_Static_assert(TM_LEDGER_ROWS_STRIDE == TM_HEAP_STRIDE, "rows of a heap fill a stride");

static struct {
	struct tm_lock lock;
	struct tm_ledger_header *header; /* NULL: no ledger */
	char path[256];
	char *records;                     /* address of granule record 0 */
	uint64_t window[WINDOWS / 64 + 1]; /* [lock] populated */
	uint64_t step[STEPS / 64];         /* [lock] populated */
	char *sides;                       /* address of the sides area */
	size_t sides_used;                 /* [lock] */
	bool full;                         /* [lock] no more can be had */
} ledger = {.lock = TM_LOCK_INIT(TM_RANK_LEDGER)};

static bool is_wanted(void)
{
	const struct tm_options *o = &tm_root.options;

	if (o->dir == NULL || o->ledger == TM_LEDGER_OFF || tm_root.secure)
		return false;
	return o->target == NULL ||
	       tm_parse_glob_list(tm_str_of(o->target), tm_str_of(tm_root.program));
}

static void say_full(const char *why)
{
	if (ledger.full)
		return;
	ledger.full = true;
	tm_msg(TM_MSG_WARN, "the ledger '%s' %s: what follows is counted in private memory",
	       ledger.path, why);
}

static int map_rows(uintptr_t at, uint32_t heap_index)
{
	if (tm_mem_populate_write((void *)at, TM_PAGE_BYTES) != 0) {
		say_full("has no room");
		/* The heap's rows alone are private then. */
		return tm_mem_map_fixed((void *)at, TM_HEAP_STRIDE, PROT_READ | PROT_WRITE);
	}
	if (heap_index >= ledger.header->heaps) /* heaps are created under one lock */
		__atomic_store_n(&ledger.header->heaps, heap_index + 1, __ATOMIC_RELEASE);
	return 0;
}

static bool need_rows(uintptr_t rows, size_t bytes)
{
	/* Rows are added one by one: only the first byte of a page asks for it. */
	if (bytes % TM_PAGE_BYTES != 0)
		return true;
	return tm_mem_populate_write((void *)(rows + bytes), TM_PAGE_BYTES) == 0;
}

static void *side_chunk(size_t bytes)
{
	char *at = NULL;

	tm_lock_acquire(&ledger.lock);
	if (!ledger.full && ledger.sides_used + bytes <= TM_LEDGER_SIDES_BYTES) {
		at = ledger.sides + ledger.sides_used;
		ledger.sides_used += bytes;
		if (tm_mem_populate_write(at, bytes) != 0) {
			at = NULL;
			say_full("has no room");
		}
	}
	if (at == NULL)
		__atomic_fetch_add(&ledger.header->private_bytes, bytes, __ATOMIC_RELAXED);
	tm_lock_release(&ledger.lock);
	return at;
}

/* [lock] */
static bool populate_step(size_t n)
{
	if ((ledger.step[n / 64] >> (n % 64) & 1) != 0)
		return true;
	if (ledger.full ||
	    tm_mem_populate_write((char *)ledger.header + n * STEP_BYTES, STEP_BYTES) != 0) {
		say_full("has no room");
		return false;
	}
	__atomic_fetch_or(&ledger.step[n / 64], UINT64_C(1) << (n % 64), __ATOMIC_RELEASE);
	return true;
}

void *tm_ledger_area(uint64_t offset, size_t bytes)
{
	char *at = (char *)ledger.header + offset;
	bool ok = true;

	if (ledger.header == NULL || bytes == 0)
		return NULL;
	for (size_t n = offset / STEP_BYTES; ok && n <= (offset + bytes - 1) / STEP_BYTES; n++) {
		if (__atomic_load_n(&ledger.step[n / 64], __ATOMIC_ACQUIRE) >> (n % 64) & 1)
			continue;
		tm_lock_acquire(&ledger.lock);
		ok = populate_step(n);
		tm_lock_release(&ledger.lock);
	}
	return ok ? at : NULL;
}

struct tm_ledger_header *tm_ledger_header(void)
{
	return ledger.header;
}

/* The record of a granule, or NULL where it cannot be had. */
static struct tm_ledger_granule *record_of(const struct tm_granule *head)
{
	size_t index = (size_t)(head - tm_zone.granules);
	size_t first = index * sizeof(struct tm_ledger_granule) / WINDOW_BYTES;
	size_t last = ((index + 1) * sizeof(struct tm_ledger_granule) - 1) / WINDOW_BYTES;
	bool ok = true;

	for (size_t w = first; w <= last; w++) {
		if (__atomic_load_n(&ledger.window[w / 64], __ATOMIC_ACQUIRE) >> (w % 64) & 1)
			continue;
		tm_lock_acquire(&ledger.lock);
		if ((ledger.window[w / 64] >> (w % 64) & 1) == 0) {
			int rc = ledger.full
					 ? -ENOSPC
					 : tm_mem_populate_write(ledger.records + w * WINDOW_BYTES,
								 WINDOW_BYTES);
			if (rc == 0)
				__atomic_fetch_or(&ledger.window[w / 64], UINT64_C(1) << (w % 64),
						  __ATOMIC_RELEASE);
			else
				say_full("has no room");
		}
		ok = ok && (ledger.window[w / 64] >> (w % 64) & 1) != 0;
		tm_lock_release(&ledger.lock);
	}
	if (!ok)
		return NULL;
	uint64_t seen = __atomic_load_n(&ledger.header->granules, __ATOMIC_RELAXED);
	while (seen <= index &&
	       !__atomic_compare_exchange_n(&ledger.header->granules, &seen, index + 1, true,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	return (struct tm_ledger_granule *)(void *)ledger.records + index;
}

unsigned tm_ledger_tier(size_t granule)
{
	size_t w = granule * sizeof(struct tm_ledger_granule) / WINDOW_BYTES;

	if (ledger.header == NULL ||
	    (__atomic_load_n(&ledger.window[w / 64], __ATOMIC_ACQUIRE) >> (w % 64) & 1) == 0)
		return 0;
	return ((const struct tm_ledger_granule *)(void *)ledger.records)[granule].tier;
}

static bool in_file(const void *side)
{
	return (const char *)side >= ledger.sides &&
	       (const char *)side < ledger.sides + ledger.sides_used;
}

static void note_span(const struct tm_granule *head)
{
	const struct tm_heap *h = (const struct tm_heap *)(head->owner & ~TM_OWNER_BITS);
	struct tm_ledger_granule *r;

	if (!in_file(head->side) || (r = record_of(head)) == NULL)
		return;
	r->heap = (uint16_t)h->index;
	r->slot_bytes = (uint32_t)tm_class_bytes(head->klass);
	r->slots = head->nslots;
	r->first = (uint16_t)tm_span_first(head);
	r->at = (uint64_t)((const char *)head->side - ledger.sides);
	TM_SIGNAL_FENCE();
	r->kind = head->kind == TM_SPAN_SMALL ? TM_LEDGER_SMALL : TM_LEDGER_MEDIUM;
}

static void note_gone(const struct tm_granule *head)
{
	struct tm_ledger_granule *r = record_of(head);

	if (r != NULL)
		r->kind = TM_LEDGER_NOTHING;
}

static void note_block(const struct tm_granule *head)
{
	struct tm_ledger_granule *r = record_of(head);

	if (r == NULL)
		return;
	r->heap = (uint16_t)(head->large.account >> 24);
	r->id = (uint16_t)head->large.account;
	r->epoch8 = (uint8_t)(head->large.account >> 16);
	r->slot_bytes = (uint32_t)head->large.pages;
	r->at = head->large.requested;
	TM_SIGNAL_FENCE();
	r->kind = TM_LEDGER_BLOCK;
}

/* Ours, 0700, and a directory; made if it is not there. The descriptor, or -errno. */
static int open_directory(const char *path)
{
	struct stat st;
	int rc = tm_sys_mkdirat(AT_FDCWD, path, 0700);
	int fd;

	if (rc != 0 && rc != -EEXIST)
		return rc;
	fd = tm_sys_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return fd;
	rc = tm_sys_fstat(fd, &st);
	if (rc == 0 && (st.st_uid != (uid_t)tm_syscall6(SYS_geteuid, 0, 0, 0, 0, 0, 0) ||
			(st.st_mode & 077) != 0))
		rc = -EPERM;
	if (rc == 0)
		return fd;
	tm_sys_close(fd);
	return rc;
}

static int create_file(const char *directory, uint32_t pid, uint64_t start_time)
{
	char name[64];
	int dir = open_directory(directory);
	int fd, rc;

	tm_fmt(ledger.path, sizeof(ledger.path), "%s/%u-%llu.tm", directory, pid,
	       (unsigned long long)start_time);
	if (dir < 0)
		return dir;
	tm_fmt(name, sizeof(name), "%u-%llu.tm", pid, (unsigned long long)start_time);
	fd = tm_sys_openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd == -EEXIST && tm_sys_unlinkat(dir, name, 0) == 0) /* this process, before its exec */
		fd = tm_sys_openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
				   0600);
	tm_sys_close(dir);
	if (fd < 0)
		return fd;
	rc = tm_sys_ftruncate(fd, (long)TM_LEDGER_BYTES);
	if (rc == 0)
		return fd;
	tm_sys_close(fd);
	return rc;
}

/* The kernel's list of mappings. A program with few of them takes little of the file. */
static void write_maps(void)
{
	long n = 0;

	for (size_t room = STEP_BYTES; room <= TM_LEDGER_MAPS_BYTES; room *= 2) {
		char *text = tm_ledger_area(TM_LEDGER_MAPS_AT, room);

		if (text == NULL)
			break;
		n = tm_proc_read("/proc/self/maps", text, room);
		if (n < (long)room - 1)
			break;
	}
	__atomic_store_n(&ledger.header->maps_bytes, n < 0 ? 0 : (uint32_t)n, __ATOMIC_RELEASE);
}

static int map_area(int fd, uintptr_t at, size_t bytes, uint64_t offset)
{
	long p = tm_sys_mmap((void *)at, bytes, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, fd, (long)offset);

	if (tm_sys_is_error(p))
		return (int)p;
	if (p != (long)at) {
		tm_mem_unmap_raw((void *)p, bytes);
		return -EEXIST;
	}
	(void)tm_mem_dontdump((void *)at, bytes);
	return 0;
}

static int map_all(int fd)
{
	const uintptr_t base = tm_heap_base();
	const struct {
		uintptr_t at;
		size_t bytes;
		uint64_t offset;
	} area[] = {
		{base + TM_ROWS_OFFSET, TM_ROWS_OFFSET, TM_LEDGER_ROWS_AT},
		{base + RECORDS_DISTANCE, RECORDS_BYTES, TM_LEDGER_GRANULES_AT},
		{base + SIDES_DISTANCE, TM_LEDGER_SIDES_BYTES, TM_LEDGER_SIDES_AT},
	};
	const size_t header_bytes = TM_LEDGER_TABLES_BYTES;
	int rc = 0;
	size_t n = 0;

	for (; rc == 0 && n < TM_ARRAY_LEN(area); n++)
		rc = map_area(fd, area[n].at, area[n].bytes, area[n].offset);
	if (rc == 0) {
		long p = tm_sys_mmap(NULL, header_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		rc = tm_sys_is_error(p) ? (int)p : tm_mem_populate_write((void *)p, STEP_BYTES);
		if (rc == 0)
			ledger.header = (struct tm_ledger_header *)p;
		n++;
	}
	if (rc != 0)
		while (n-- > 1)
			tm_mem_unmap_raw((void *)area[n - 1].at, area[n - 1].bytes);
	return rc;
}

static void parse_uuid(const char *text, uint64_t *ret_words)
{
	unsigned digits = 0;

	for (; *text != '\0' && digits < 32; text++) {
		unsigned c = (unsigned char)*text;

		if (c == '-')
			continue;
		c = c <= '9' ? c - '0' : c - 'a' + 10;
		ret_words[digits / 16] = ret_words[digits / 16] << 4 | (c & 15);
		digits++;
	}
}

/* Which machine, which container, which program: a process id alone is used again. */
static void describe_process(struct tm_ledger_header *h)
{
	char text[48];
	struct stat st;

	if (tm_proc_read("/proc/sys/kernel/random/boot_id", text, sizeof(text)) > 0)
		parse_uuid(text, h->boot_id);
	if (tm_proc_may_open() && tm_sys_fstatat(AT_FDCWD, "/proc/self/ns/pid", &st, 0) == 0)
		h->pid_namespace = st.st_ino;
	h->parent = (uint32_t)tm_syscall6(SYS_getppid, 0, 0, 0, 0, 0, 0);
	char *command = tm_ledger_area(TM_LEDGER_COMMAND_AT, TM_LEDGER_COMMAND_BYTES);
	long n = command == NULL
			 ? 0
			 : tm_proc_read("/proc/self/cmdline", command, TM_LEDGER_COMMAND_BYTES);
	h->command_bytes = n < 0 ? 0 : (uint32_t)n;
	uintptr_t headers = tm_proc_auxv(AT_PHDR) & ~(TM_PAGE_BYTES - 1);
	h->exe_build_id_bytes = headers == 0 ? 0
					     : tm_modules_build_id(headers, h->exe_build_id,
								   sizeof(h->exe_build_id));
}

static void write_header(uint32_t pid, uint64_t start_time)
{
	struct tm_ledger_header *h = ledger.header;

	h->version = TM_LEDGER_VERSION;
	h->pid = pid;
	h->start_time = start_time;
	h->zone_base = tm_zone.base;
	h->begun_unix_s = tm_clock_wall_s();
	h->begun_ms = tm_clock_ms();
	h->page_bytes = TM_PAGE_BYTES;
	h->begun_unix_ns = tm_clock_wall_ns();
	h->features = TM_LEDGER_STAYS | TM_LEDGER_HAS_STACKS;
	if (tm_root.options.ledger >= TM_LEDGER_STACK)
		h->features |= TM_LEDGER_HAS_SAMPLES;
	h->heartbeat_ms = h->begun_ms;
	tm_epoch_begin(tm_root.options.leak_window_ms == TM_OPTION_AUTO
			       ? WINDOW_MS
			       : (uint32_t)tm_root.options.leak_window_ms);
	describe_process(h);
	tm_fmt(h->program, sizeof(h->program), "%s", tm_root.program);
	write_maps();
	__atomic_store_n(&h->magic, TM_LEDGER_MAGIC, __ATOMIC_RELEASE);
}

static void pass(const struct tm_heap *h, const struct tm_row *row, size_t bytes,
		 struct tm_site site)
{
	if (tm_root.options.ledger >= TM_LEDGER_STACK)
		tm_callsite_sample(h, row, bytes, site);
	tm_samples_pass();
}

void tm_ledger_init(void)
{
	uint32_t pid = (uint32_t)tm_syscall6(SYS_getpid, 0, 0, 0, 0, 0, 0);
	uint64_t start_time;

	if (!is_wanted())
		return;
	start_time = tm_proc_start_time();
	int fd = create_file(tm_root.options.dir, pid, start_time);
	int rc = fd < 0 ? fd : map_all(fd);
	if (fd >= 0)
		tm_sys_close(fd);
	if (rc != 0) {
		tm_msg(TM_MSG_WARN, "no ledger '%s' (error %d): the account is kept in memory only",
		       ledger.path, -rc);
		if (fd >= 0)
			tm_sys_unlinkat(AT_FDCWD, ledger.path, 0);
		return;
	}
	tm_lock_register(&ledger.lock);
	ledger.records = (char *)(tm_heap_base() + RECORDS_DISTANCE);
	ledger.sides = (char *)(tm_heap_base() + SIDES_DISTANCE);
	__atomic_fetch_or(&ledger.step[0], 1, __ATOMIC_RELAXED);
	write_header(pid, start_time);
	tm_modules_init();
	tm_samples_init();
	tm_account_store = (struct tm_account_store){
		.map_rows = map_rows,
		.need_rows = need_rows,
		.side_chunk = side_chunk,
		.span = note_span,
		.gone = note_gone,
		.block = note_block,
		.site = tm_callsite_new,
		.sample = pass,
	};
	tm_heap_wipe_on_fork(TM_HEAP_WIPE);
}

bool tm_ledger_is_on(void)
{
	return ledger.header != NULL;
}

void tm_ledger_fork_prepare(void)
{
	if (ledger.header != NULL)
		tm_heap_wipe_on_fork(TM_HEAP_KEEP);
}

void tm_ledger_fork_parent(void)
{
	if (ledger.header != NULL)
		tm_heap_wipe_on_fork(TM_HEAP_WIPE);
}

void tm_ledger_fork_child(void)
{
	struct tm_ledger_header *header = ledger.header;

	if (header == NULL)
		return;
	/* First of all nothing must point into the parent's file; then nobody is told any more. */
	tm_mem_map_fixed((void *)(tm_heap_base() + TM_ROWS_OFFSET), TM_ROWS_OFFSET,
			 PROT_READ | PROT_WRITE);
	tm_mem_map_fixed(ledger.sides, TM_LEDGER_SIDES_BYTES, PROT_READ | PROT_WRITE);
	tm_account_store = (struct tm_account_store){0};
	tm_mem_unmap_raw(ledger.records, RECORDS_BYTES);
	tm_mem_unmap_raw(header, TM_LEDGER_TABLES_BYTES);
	ledger.header = NULL;
	tm_callsite_fork_child();
}

void tm_ledger_end(void)
{
	/* A vfork child that calls exit lives in its parent's memory. */
	if (ledger.header == NULL || ledger.header->clean_exit != 0 ||
	    ledger.header->pid != (uint32_t)tm_syscall6(SYS_getpid, 0, 0, 0, 0, 0, 0))
		return;
	write_maps();
	tm_samples_now();
	ledger.header->ended_ms = tm_clock_ms();
	__atomic_store_n(&ledger.header->clean_exit, 1, __ATOMIC_RELEASE);
}
