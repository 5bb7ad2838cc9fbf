/* SPDX-License-Identifier: MIT */
/* trace: see trace.h. */
#include "shim/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "shim/alloc.h"
#include "shim/base/bits.h"
#include "shim/base/trace_format.h"
#include "shim/boot.h"
#include "shim/cxx.h"
#include "shim/heap/account.h"
#include "shim/ledger/deep.h"
#include "shim/ledger/python.h"
#include "shim/os/clock.h"
#include "shim/os/lock.h"
#include "shim/os/mem.h"
#include "shim/os/msg.h"
#include "shim/os/proc.h"
#include "shim/os/sys.h"
#include "shim/report.h"

#define NOTES 1024u
#define TEXT_BYTES ((size_t)1 << 20)

static _Atomic bool tracing;
static struct tm_lock trace_lock = TM_LOCK_INIT(TM_RANK_TRACE);

static struct {
	uint32_t used;
	struct tm_trace_record *notes; /* NOTES of them */
	char path[1024];
} trace;

/* This thread is recording, or inside a function that records. */
static TM_TLS bool busy;
/* Inside realloc, which may free the old block through the ops: realloc records both itself. */
static TM_TLS bool reallocating;

/* --- the file --------------------------------------------------------------------------------- */

static void stop(const char *why)
{
	atomic_store_explicit(&tracing, false, memory_order_relaxed);
	tm_msg(TM_MSG_WARN, "the trace '%s' ends here: %s", trace.path, why);
}

/* With the lock. */
static void flush(void)
{
	int fd;

	if (trace.used == 0)
		return;
	fd = tm_proc_may_open() ? tm_sys_open(trace.path, O_WRONLY | O_APPEND | O_NOFOLLOW, 0) : -1;
	if (fd < 0 ||
	    tm_msg_write(fd, (const char *)trace.notes, trace.used * sizeof(*trace.notes)) != 0)
		stop("it cannot be written");
	if (fd >= 0)
		tm_sys_close(fd);
	trace.used = 0;
}

static struct tm_trace_record *next_note(void)
{
	if (trace.used == NOTES)
		flush();
	return &trace.notes[trace.used++];
}

/* Appends the process's memory map, after a TM_TRACE_RECORD_TEXT. */
static void write_modules(void)
{
	char *text = tm_mem_map(TEXT_BYTES);
	long n = text ? tm_proc_read("/proc/self/maps", text, TEXT_BYTES) : -ENOMEM;
	int fd;

	if (n > 0) {
		*next_note() = (struct tm_trace_record){
			.time_ns = tm_clock_ns(), .size = (uint64_t)n, .op = TM_TRACE_RECORD_TEXT};
		flush();
		fd = tm_proc_may_open()
			     ? tm_sys_open(trace.path, O_WRONLY | O_APPEND | O_NOFOLLOW, 0)
			     : -1;
		if (fd < 0 || tm_msg_write(fd, text, (size_t)n) != 0)
			stop("it cannot be written");
		if (fd >= 0)
			tm_sys_close(fd);
	}
	if (text)
		tm_mem_unmap(text, TEXT_BYTES);
}

/* --- notes ------------------------------------------------------------------------------------ */

static bool begin(void)
{
	if (busy || !atomic_load_explicit(&tracing, memory_order_relaxed))
		return false;
	busy = true;
	return true;
}

/* Stack height as in the account; 0 in a thread without a heap. */
static uint32_t height_of(struct tm_site site)
{
	uintptr_t word = tm_heap_word;
	uintptr_t top = 0;

	if (!tm_heap_word_is_none(word))
		top = tm_heap_of_word(word)->stack_top;
	return top > site.frame ? (uint32_t)tm_bits_min(top - site.frame, UINT32_MAX) : 0;
}

struct call {
	uint8_t op;
	void *pointer, *old;
	size_t size, align;
};

/* Only between begin and end. Keeps errno. */
static void note(const struct call *call, struct tm_site site)
{
	int saved = errno;
	struct tm_trace_record *r;

	tm_lock_acquire(&trace_lock);
	r = next_note();
	*r = (struct tm_trace_record){
		.time_ns = tm_clock_ns(),
		.pointer = (uintptr_t)call->pointer,
		.old = (uintptr_t)call->old,
		.size = call->size,
		.site = site.return_address,
		.height = height_of(site),
		.thread = (uint32_t)tm_sys_gettid(),
		.op = call->op,
		.align_log2 = (uint8_t)(call->align ? tm_bits_log2(call->align) : 0),
	};
	tm_lock_release(&trace_lock);
	errno = saved;
}

static void end(void)
{
	busy = false;
}

/* Allocations and frees are also passed to deep.h. */
static void *noted(uint8_t op, void *p, size_t size, size_t align, struct tm_site site)
{
	if (p == NULL)
		return p;
	if (tm_deep_is_wanted())
		tm_deep_born(p);
	if (begin()) {
		note(&(struct call){op, p, NULL, size, align}, site);
		end();
	}
	return p;
}

/* A trace has return addresses; only the account may have Python lines. */
static struct tm_site line_of(struct tm_site site, size_t size)
{
	return atomic_load_explicit(&tracing, memory_order_relaxed) ? site
								    : tm_python_site(site, size);
}

static void *trace_malloc(size_t size)
{
	struct tm_site site = line_of(TM_SITE_HERE, size);

	return noted(TM_TRACE_RECORD_MALLOC, tm_alloc_any(size, site), size, 0, site);
}

static void *trace_calloc(size_t n, size_t size)
{
	size_t bytes;

	if (!tm_alloc_product(n, size, &bytes))
		return NULL;
	struct tm_site site = line_of(TM_SITE_HERE, bytes);
	return noted(TM_TRACE_RECORD_CALLOC, tm_alloc_zero_slow(bytes, site), bytes, 0, site);
}

static void *trace_memalign(size_t align, size_t size)
{
	struct tm_site site = TM_SITE_HERE;

	return noted(TM_TRACE_RECORD_ALIGNED, tm_alloc_aligned_slow(align, size, site), size, align,
		     site);
}

static int trace_posix_memalign(void **ret_p, size_t align, size_t size)
{
	struct tm_site site = TM_SITE_HERE;
	int saved = errno;
	void *p;

	if (align < sizeof(void *) || (align & (align - 1)) != 0)
		return EINVAL;
	p = noted(TM_TRACE_RECORD_ALIGNED, tm_alloc_aligned_slow(align, size, site), size, align,
		  site);
	errno = saved;
	if (p == NULL)
		return ENOMEM;
	*ret_p = p;
	return 0;
}

/* once realloc has freed the old block, another thread may get its address */
static void *trace_realloc(void *p, size_t size)
{
	struct tm_site site = line_of(TM_SITE_HERE, size);
	struct tm_deep_life old = {.birth = NULL};
	bool mine = begin(), deep = tm_deep_is_wanted() && p != NULL && size != 0;

	if (deep)
		old = tm_deep_look(p);
	reallocating = deep;
	void *fresh = tm_alloc_realloc_slow(p, size, site);
	reallocating = false;
	if (fresh != NULL)
		tm_deep_died(&old);
	if (fresh != NULL && tm_deep_is_wanted())
		tm_deep_born(fresh);
	if (!mine)
		return fresh;
	if (fresh != NULL)
		note(&(struct call){TM_TRACE_RECORD_REALLOC, fresh, p, size, 0}, site);
	else if (p != NULL && size == 0)
		note(&(struct call){TM_TRACE_RECORD_FREE, p, NULL, 0, 0}, site);
	end();
	return fresh;
}

/* Records before the free: afterwards another thread may get the address. */
static void before_free(uint8_t op, void *p, struct tm_site site)
{
	if (p == NULL)
		return;
	if (tm_deep_is_wanted()) {
		struct tm_deep_life life = tm_deep_look(p);

		tm_deep_forget(&life);
		if (!reallocating)
			tm_deep_died(&life);
	}
	if (begin()) {
		note(&(struct call){op, p, NULL, 0, 0}, site);
		end();
	}
}

static void trace_free(void *p)
{
	before_free(TM_TRACE_RECORD_FREE, p, TM_SITE_HERE);
	tm_alloc_free(p);
}

static void trace_delete(void *p)
{
	before_free(TM_TRACE_RECORD_DELETE, p, TM_SITE_HERE);
	tm_alloc_free(p);
}

static void trace_delete_sized(void *p, size_t size)
{
	before_free(TM_TRACE_RECORD_DELETE, p, TM_SITE_HERE);
	tm_alloc_free_sized(p, size);
}

/* If memory is exhausted this calls the program's new_handler, which may throw. */
static void *trace_new(size_t size)
{
	struct tm_site site = TM_SITE_HERE;
	void *p = tm_alloc_any(size, site);

	return noted(TM_TRACE_RECORD_NEW, p ? p : tm_cxx_new_failed(size, 16), size, 0, site);
}

static void *trace_new_aligned(size_t size, size_t align)
{
	struct tm_site site = TM_SITE_HERE;
	void *p = tm_alloc_aligned_slow(align, size, site);

	return noted(TM_TRACE_RECORD_NEW, p ? p : tm_cxx_new_failed(size, align), size, align,
		     site);
}

static void *trace_new_nothrow(size_t size)
{
	struct tm_site site = TM_SITE_HERE;
	void *p = tm_alloc_any(size, site);

	return noted(TM_TRACE_RECORD_NEW, p ? p : tm_cxx_nothrow_failed(size, 16), size, 0, site);
}

static void *trace_new_aligned_nothrow(size_t size, size_t align)
{
	struct tm_site site = TM_SITE_HERE;
	void *p = tm_alloc_aligned_slow(align, size, site);

	return noted(TM_TRACE_RECORD_NEW, p ? p : tm_cxx_nothrow_failed(size, align), size, align,
		     site);
}

/* --- begin and end ---------------------------------------------------------------------------- */

/* 0 or -errno. */
static int make_file(const char *pattern)
{
	const uint64_t magic = TM_TRACE_RECORD_MAGIC;
	int fd;

	if (!tm_report_expand(pattern, trace.path, sizeof(trace.path)))
		return -ENAMETOOLONG;
	fd = tm_sys_open(trace.path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return fd;
	int rc = tm_msg_write(fd, (const char *)&magic, sizeof(magic));
	tm_sys_close(fd);
	return rc;
}

static bool begin_trace(void)
{
	const char *pattern = tm_root.options.trace;

	if (pattern == NULL || pattern[0] == '\0')
		return false;
	trace.notes = tm_mem_map(NOTES * sizeof(*trace.notes));
	int rc = trace.notes == NULL ? -ENOMEM : make_file(pattern);
	if (rc != 0) {
		tm_msg(TM_MSG_WARN,
		       "TIERMALLOC_TRACE='%s' cannot be written (%s), nothing is recorded", pattern,
		       tm_msg_reason(-rc));
		return false;
	}
	atomic_store_explicit(&tracing, true, memory_order_relaxed);
	return true;
}

static void wrap(struct tm_ops *ops)
{
	ops->malloc = trace_malloc;
	ops->free = trace_free;
	ops->calloc = trace_calloc;
	ops->realloc = trace_realloc;
	ops->memalign = trace_memalign;
	ops->posix_memalign = trace_posix_memalign;
	ops->op_new = trace_new;
	ops->op_new_aligned = trace_new_aligned;
	ops->op_new_nothrow = trace_new_nothrow;
	ops->op_new_aligned_nothrow = trace_new_aligned_nothrow;
	ops->op_delete = trace_delete;
	ops->op_delete_sized = trace_delete_sized;
}

TM_AT_START_CODE void tm_trace_ops(struct tm_ops *ops)
{
	tm_lock_register(&trace_lock);
	if (begin_trace() || tm_deep_is_wanted())
		wrap(ops);
}

void tm_trace_step(void)
{
	if (!begin())
		return;
	note(&(struct call){TM_TRACE_RECORD_MARK, (void *)(uintptr_t)1, NULL, 0, 0}, TM_SITE_HERE);
	end();
}

TM_AT_START_CODE void tm_trace_end(void)
{
	if (!begin())
		return;
	tm_lock_acquire(&trace_lock);
	flush();
	write_modules();
	tm_lock_release(&trace_lock);
	end();
}

TM_AT_START_CODE void tm_trace_fork_child(void)
{
	if (!atomic_load_explicit(&tracing, memory_order_relaxed))
		return;
	atomic_store_explicit(&tracing, false, memory_order_relaxed);
	trace.used = 0;
}
