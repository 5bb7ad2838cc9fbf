/* SPDX-License-Identifier: MIT */
#include "shim/alloc_debug.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "shim/alloc.h"
#include "shim/base/bits.h"
#include "shim/base/hash.h"
#include "shim/boot.h"
#include "shim/cxx.h"
#include "shim/foreign.h"
#include "shim/guard_pages.h"
#include "shim/heap/account.h"
#include "shim/heap/zone.h"
#include "shim/os/msg.h"
#include "shim/routing.h"
#include "shim/thread.h"

/* Size of the canary behind a block; the one before it has this size or that of its alignment. */
#define TAIL_BYTES 16u
#define FRONT_BYTES 16u
#define TAIL_BYTE 0xc5
#define FREED_BYTE 0xdf
#define QUARANTINE 1024u
#define QUARANTINE_BYTES ((int64_t)32 << 20)
/* Larger blocks are not quarantined but checked and freed at once. */
#define QUARANTINED_MAX ((size_t)256 << 10)

struct front {
	uint64_t key; /* hash of address, length of the front and `size`; inverted: freed */
	uint64_t size;
};

static struct {
	_Atomic(char *) block[QUARANTINE]; /* the program's pointers */
	_Atomic uint32_t next;
	_Atomic int64_t bytes;
} quarantine;

static TM_TLS uint32_t until_sample;

static uint64_t key_of(const char *base, size_t front, uint64_t size)
{
	uint64_t secret;

	memcpy(&secret, tm_root.random, sizeof(secret));
	return tm_hash_u64(tm_hash_u64(secret ^ (uintptr_t)base ^ front) ^ size);
}

/* --- canaries --------------------------------------------------------------------------------- */

enum state {
	BLOCK_NONE,  /* no live block covers the address */
	BLOCK_PLAIN, /* begins there, without canaries */
	BLOCK_INSIDE,
	BLOCK_GUARDED,
	BLOCK_FREED, /* in quarantine */
	BLOCK_BROKEN /* its front canary is overwritten */
};

struct block {
	enum state state;
	char *base;
	size_t size; /* requested by the program; PLAIN: the same, or the slot's size */
};

/* Some blocks have canaries. */
static bool guards(void)
{
	return tm_root.options.guard == TM_GUARD_ALL || tm_routing_guards(TM_RULE_GUARD_ALL);
}

static bool asks_rules(void)
{
	return tm_routing_guards(TM_RULE_GUARD_OFF) || tm_routing_guards(TM_RULE_GUARD_SAMPLE) ||
	       tm_routing_guards(TM_RULE_GUARD_ALL);
}

static struct block look(const void *p)
{
	struct block b = {.state = BLOCK_NONE};
	size_t total = 0;
	struct front front;
	uint64_t key;

	/*
	 * may be the first call in the child of a raw fork: side entries shared with its parent are
	 * void
	 */
	tm_thread_arrive();
	b.base = tm_zone_contains(p) ? tm_alloc_block_of(p, &total) : NULL;
	if (b.base == NULL)
		return b;
	b.size = total;
	size_t ahead = (size_t)((const char *)p - b.base);
	if (!guards() || total < FRONT_BYTES + TAIL_BYTES || ahead % FRONT_BYTES != 0 ||
	    (ahead != 0 && ahead + TAIL_BYTES > total)) {
		b.state = ahead == 0 ? BLOCK_PLAIN : BLOCK_INSIDE;
		return b;
	}
	memcpy(&front, b.base, sizeof(front));
	if (ahead == 0) {
		/* the program never gets a pointer to the start of a guarded block */
		for (size_t align = FRONT_BYTES; align <= total - TAIL_BYTES; align *= 2)
			if (front.key == key_of(b.base, align, front.size) ||
			    front.key == ~key_of(b.base, align, front.size)) {
				b.state = BLOCK_INSIDE;
				return b;
			}
		b.state = BLOCK_PLAIN;
		return b;
	}
	b.size = total - ahead - TAIL_BYTES;
	key = key_of(b.base, ahead, front.size);
	/* an upper bound: not every entry has the requested size */
	if ((front.key == key || front.key == ~key) && front.size <= b.size) {
		b.state = front.key == key ? BLOCK_GUARDED : BLOCK_FREED;
		b.size = front.size;
	} else {
		/* a power of two can be the front length of this block, another number cannot */
		b.state = (ahead & (ahead - 1)) == 0 ? BLOCK_BROKEN : BLOCK_INSIDE;
	}
	return b;
}

static bool is_filled(const char *at, size_t bytes, int byte)
{
	for (size_t i = 0; i < bytes; i++)
		if ((unsigned char)at[i] != (unsigned char)byte)
			return false;
	return true;
}

static void tell(enum tm_error_kind kind, const void *p, const char *what, size_t size)
{
	tm_msg(TM_MSG_WARN, "%s a block of %zu bytes at %p", what, size, p);
	tm_error_count(kind, p);
}

static void *guarded(size_t size, size_t align, bool zero, struct tm_site site)
{
	size_t front = tm_bits_max(align, FRONT_BYTES), total;
	char *base = NULL;

	if (size <= PTRDIFF_MAX && !__builtin_add_overflow(size, front + TAIL_BYTES, &total))
		base = tm_alloc_padded(&(struct tm_alloc_padded){align, total, size, zero}, site);
	else
		errno = ENOMEM;
	/* in a signal handler: emergency memory, which has no side entries */
	if (base == NULL || !tm_zone_contains(base))
		return base;
	*(struct front *)base = (struct front){key_of(base, front, size), size};
	memset(base + front + size, TAIL_BYTE, TAIL_BYTES);
	return base + front;
}

/* --- quarantine ------------------------------------------------------------------------------- */

static int freed_byte(void)
{
	return tm_root.options.fill_free >= 0 ? tm_root.options.fill_free : FREED_BYTE;
}

static void evict(char *p)
{
	struct block b = look(p);

	atomic_fetch_sub_explicit(&quarantine.bytes, (int64_t)b.size, memory_order_relaxed);
	if (b.state != BLOCK_FREED || !is_filled(p, b.size, freed_byte()) ||
	    !is_filled(p + b.size, TAIL_BYTES, TAIL_BYTE))
		tell(TM_ERROR_USE_AFTER_FREE, p, "written after its free:", b.size);
	if (b.base == NULL)
		return;
	/* the next block at this address may be one without canaries */
	memset(b.base, 0, sizeof(struct front));
	tm_alloc_free(b.base);
}

static void evict_next(void)
{
	uint32_t at = atomic_fetch_add_explicit(&quarantine.next, 1, memory_order_relaxed);
	char *old = atomic_exchange_explicit(&quarantine.block[at % QUARANTINE], NULL,
					     memory_order_acq_rel);

	if (old != NULL)
		evict(old);
}

static void put(char *p, size_t size)
{
	uint32_t at = atomic_fetch_add_explicit(&quarantine.next, 1, memory_order_relaxed);
	char *old;

	atomic_fetch_add_explicit(&quarantine.bytes, (int64_t)size, memory_order_relaxed);
	old = atomic_exchange_explicit(&quarantine.block[at % QUARANTINE], p, memory_order_acq_rel);
	if (old != NULL)
		evict(old);
	for (unsigned i = 0;
	     i < QUARANTINE &&
	     atomic_load_explicit(&quarantine.bytes, memory_order_relaxed) > QUARANTINE_BYTES;
	     i++)
		evict_next();
}

TM_AT_START_CODE void tm_alloc_debug_drain(void)
{
	if (!tm_boot_is_ready() || tm_root.server != TM_SERVER_ENGINE || !guards())
		return;
	for (unsigned i = 0; i < QUARANTINE; i++)
		evict_next();
}

/* --- the family ------------------------------------------------------------------------------- */

static enum tm_guard asked_of_rules(size_t size, size_t align, struct tm_site site)
{
	struct tm_thread_heap held = tm_thread_enter();
	enum tm_rule_guard guard = TM_RULE_GUARD_UNSET;

	if (held.hold != TM_THREAD_NONE)
		guard = tm_routing_guard(held.heap,
					 &(struct tm_routing_request){size, align, site, 0});
	tm_thread_leave(held);
	switch (guard) {
	case TM_RULE_GUARD_OFF: return TM_GUARD_OFF;
	case TM_RULE_GUARD_SAMPLE: return TM_GUARD_SAMPLE;
	case TM_RULE_GUARD_ALL: return TM_GUARD_ALL;
	case TM_RULE_GUARD_UNSET: break;
	}
	return (enum tm_guard)tm_root.options.guard;
}

static bool is_sampled(void)
{
	if (until_sample-- != 0)
		return false;
	until_sample = tm_root.options.guard_one_in - 1;
	return true;
}

/* How this request is guarded: TM_GUARD_SAMPLE for one in guard_one_in requests. */
static enum tm_guard choose(size_t size, size_t align, struct tm_site site)
{
	enum tm_guard guard = (enum tm_guard)tm_root.options.guard;

	if (asks_rules())
		guard = asked_of_rules(size, align, site);
	return guard == TM_GUARD_SAMPLE && !is_sampled() ? TM_GUARD_OFF : guard;
}

static void *take(size_t size, size_t align, bool zero, struct tm_site site, enum tm_guard guard)
{
	void *p;

	if (align < tm_root.options.align_bytes)
		align = tm_root.options.align_bytes;
	if (guard == TM_GUARD_ALL)
		p = guarded(size, align, zero, site);
	else if (zero)
		p = tm_alloc_zero_aligned(align, size, site);
	else
		p = align <= 16 ? tm_alloc_any(size, site)
				: tm_alloc_aligned_slow(align, size, site);
	/* fills all bytes that malloc_usable_size reports */
	if (p != NULL && !zero && tm_root.options.fill_alloc >= 0)
		memset(p, tm_root.options.fill_alloc,
		       guard == TM_GUARD_ALL ? size : tm_alloc_usable(p));
	return p;
}

static void *take_chosen(size_t size, size_t align, bool zero, struct tm_site site,
			 enum tm_guard guard)
{
	if (guard == TM_GUARD_SAMPLE) {
		void *p = tm_guard_pages_take(size, tm_bits_max(align, 16));

		if (p != NULL && !zero && tm_root.options.fill_alloc >= 0)
			memset(p, tm_root.options.fill_alloc, size);
		if (p != NULL)
			return p;
	}
	return take(size, align, zero, site, guard);
}

static void *debug_take(size_t size, size_t align, bool zero, struct tm_site site)
{
	return take_chosen(size, align, zero, site, choose(size, align, site));
}

static void give_guarded(char *p, const struct block *b)
{
	struct front *front = (struct front *)b->base;

	if (!is_filled(p + b->size, TAIL_BYTES, TAIL_BYTE))
		tell(TM_ERROR_OVERRUN, p, "written behind the end:", b->size);
	memset(p, freed_byte(), b->size);
	if (b->size > QUARANTINED_MAX) {
		memset(front, 0, sizeof(*front));
		tm_alloc_free(b->base);
		return;
	}
	memset(p + b->size, TAIL_BYTE, TAIL_BYTES);
	front->key = ~front->key;
	put(p, b->size);
}

static void debug_free(void *p)
{
	struct block b;

	if (p != NULL && tm_guard_pages_own(p)) {
		if (!tm_guard_pages_give(p))
			tm_error_count(TM_ERROR_DOUBLE, p);
		return;
	}
	b = look(p);
	switch (b.state) {
	case BLOCK_GUARDED: give_guarded(p, &b); return;
	case BLOCK_FREED: tm_error_count(TM_ERROR_DOUBLE, p); return;
	case BLOCK_BROKEN:
		tell(TM_ERROR_OVERRUN, p, "written in front of the beginning:", b.size);
		return; /* its header can't be trusted: leak the block */
	case BLOCK_INSIDE: tm_error_count(TM_ERROR_INTERIOR, p); return;
	case BLOCK_PLAIN:
		if (tm_root.options.fill_free >= 0)
			memset(p, tm_root.options.fill_free, b.size);
		break;
	case BLOCK_NONE: break;
	}
	tm_alloc_free(p);
}

/* Usable bytes; SIZE_MAX: no block of ours begins there. */
static size_t bytes_of(void *p)
{
	struct block b;

	if (tm_guard_pages_own(p))
		return tm_guard_pages_bytes(p) ? tm_guard_pages_bytes(p) : SIZE_MAX;
	b = look(p);
	return b.state == BLOCK_GUARDED  ? b.size
	       : b.state == BLOCK_PLAIN  ? tm_alloc_usable(p)
	       : b.state == BLOCK_BROKEN ? b.size
					 : SIZE_MAX;
}

static size_t debug_usable(void *p)
{
	size_t bytes;

	if (p == NULL)
		return 0;
	if (!tm_zone_contains(p) && !tm_guard_pages_own(p))
		return tm_alloc_usable(p);
	bytes = bytes_of(p);
	return bytes == SIZE_MAX ? 0 : bytes;
}

static void *debug_malloc(size_t size)
{
	return debug_take(size, 16, false, TM_SITE_HERE);
}

static void *debug_calloc(size_t n, size_t size)
{
	size_t bytes;

	if (!tm_alloc_product(n, size, &bytes))
		return NULL;
	return debug_take(bytes, 16, true, TM_SITE_HERE);
}

/* Nothing is to be found out about it, before and after. */
static bool is_plain(const void *p, enum tm_guard guard)
{
	return guard == TM_GUARD_OFF && tm_root.options.fill_alloc < 0 &&
	       tm_root.options.fill_free < 0 && tm_root.options.align_bytes <= 16 &&
	       !tm_guard_pages_own(p) && look(p).state == BLOCK_PLAIN;
}

/* realloc of guarded and filled blocks always moves, to reveal uses of the old pointer. */
static void *debug_realloc(void *p, size_t size)
{
	enum tm_guard guard;
	size_t old_bytes;
	void *fresh;

	if (p == NULL)
		return debug_take(size, 16, false, TM_SITE_HERE);
	if (size == 0) {
		debug_free(p);
		return NULL;
	}
	if (!tm_zone_contains(p) && !tm_guard_pages_own(p))
		return tm_alloc_realloc(p, size);
	guard = choose(size, 16, TM_SITE_HERE);
	if (is_plain(p, guard))
		return tm_alloc_realloc_slow(p, size, TM_SITE_HERE);
	old_bytes = bytes_of(p);
	if (old_bytes == SIZE_MAX) {
		debug_free(p); /* counts the error */
		errno = ENOMEM;
		return NULL;
	}
	fresh = take_chosen(size, 16, false, TM_SITE_HERE, guard);
	if (fresh == NULL)
		return NULL;
	memcpy(fresh, p, tm_bits_min(old_bytes, size));
	debug_free(p);
	return fresh;
}

static void *debug_memalign(size_t align, size_t size)
{
	return debug_take(size, align, false, TM_SITE_HERE);
}

static int debug_posix_memalign(void **ret_p, size_t align, size_t size)
{
	int saved = errno;
	void *p;

	if (align < sizeof(void *) || (align & (align - 1)) != 0)
		return EINVAL;
	p = debug_take(size, align, false, TM_SITE_HERE);
	errno = saved;
	if (p == NULL)
		return ENOMEM;
	*ret_p = p;
	return 0;
}

static void *debug_new(size_t size)
{
	void *p = debug_take(size, 16, false, TM_SITE_HERE);

	return p != NULL ? p : tm_cxx_new_failed(size, 16);
}

static void *debug_new_aligned(size_t size, size_t align)
{
	void *p = debug_take(size, align, false, TM_SITE_HERE);

	return p != NULL ? p : tm_cxx_new_failed(size, align);
}

static void *debug_new_nothrow(size_t size)
{
	void *p = debug_take(size, 16, false, TM_SITE_HERE);

	return p != NULL ? p : tm_cxx_nothrow_failed(size, 16);
}

static void *debug_new_aligned_nothrow(size_t size, size_t align)
{
	void *p = debug_take(size, align, false, TM_SITE_HERE);

	return p != NULL ? p : tm_cxx_nothrow_failed(size, align);
}

static void debug_delete_sized(void *p, size_t size)
{
	struct block b = look(p);

	if (b.state == BLOCK_GUARDED && b.size != size)
		tm_error_count(TM_ERROR_SIZE_MISMATCH, p);
	debug_free(p);
}

static bool samples(void)
{
	return tm_root.options.guard == TM_GUARD_SAMPLE || tm_routing_guards(TM_RULE_GUARD_SAMPLE);
}

TM_AT_START_CODE bool tm_alloc_debug_is_wanted(void)
{
	return guards() || samples() || tm_root.options.fill_alloc >= 0 ||
	       tm_root.options.fill_free >= 0;
}

bool tm_alloc_debug_can(enum tm_rule_guard guard)
{
	return guard == TM_RULE_GUARD_ALL      ? guards()
	       : guard == TM_RULE_GUARD_SAMPLE ? samples()
					       : true;
}

void tm_alloc_debug_ops(struct tm_ops *ops)
{
	if (samples() && !tm_guard_pages_init())
		tm_msg(TM_MSG_WARN, "guard=sample: no memory, nothing is sampled");
	*ops = (struct tm_ops){
		.malloc = debug_malloc,
		.free = debug_free,
		.calloc = debug_calloc,
		.realloc = debug_realloc,
		.memalign = debug_memalign,
		.posix_memalign = debug_posix_memalign,
		.usable_size = debug_usable,
		.op_new = debug_new,
		.op_new_aligned = debug_new_aligned,
		.op_new_nothrow = debug_new_nothrow,
		.op_new_aligned_nothrow = debug_new_aligned_nothrow,
		.op_delete = debug_free,
		.op_delete_sized = debug_delete_sized,
	};
}
