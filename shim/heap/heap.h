/* SPDX-License-Identifier: MIT */
/*
 * heap: a thread's own supply of slots.
 *
 * A heap is owned by one thread, or by nobody (an orphan, whose thread is gone). Only the owner
 * touches it, without locks, except for `remote` and `batches`, onto which any thread pushes slots
 * that it frees, and `returned`. A thread finds its heap by one TLS word. While the owner is inside
 * an allocation function the word has TM_HEAP_BUSY set: it then points into the heap's twin, whose
 * lists are always empty, so a signal handler that allocates meanwhile takes the slow path and is
 * served from elsewhere (H66). While the helper holds the heap of a sleeping thread the word has
 * TM_HEAP_STOLEN set, which leads to the twin as well. The owner changes the word by plain stores
 * of a value computed from what it loaded before, so it may set STOLEN again after the helper has
 * cleared it. So STOLEN alone means only that h->stolen has to be checked; BUSY is set by the owner
 * only.
 *
 * Address layout, one stride of TM_HEAP_STRIDE per heap:
 *   heap + 0               hot page: lists, key table (its first quarter)
 *   heap + TM_HEAP_ROOM_OFFSET  state that the layer above keeps per heap (shim/routing.c)
 *   heap + TM_HEAP_TWIN    the twin: zero pages, never written
 *   heap + TM_ROWS_OFFSET  the account's rows of this heap, in memory that may be a shared file
 *
 * Invariants (tm_heap_check): every slot on a list belongs to a span of this heap and of that
 * class; no slot is on two lists; a span's carved count covers every slot that was ever handed out.
 * Order of stores: if a fork loses the thread between two stores, the child may lose a slot but
 * must never have it twice. So the store that takes slots from their source comes before the one
 * that offers them.
 */
#ifndef TM_HEAP_HEAP_H
#define TM_HEAP_HEAP_H

#include <stdatomic.h>

#include "shim/base/attrs.h"
#include "shim/base/tunables.h"
#include "shim/heap/granule.h"
#include "shim/heap/size_class.h"
#include "shim/heap/zone.h"

#define TM_HEAP_STRIDE ((size_t)128 << 10)
#define TM_HEAP_TWIN ((uintptr_t)64 << 10)
/*
 * Multiples of struct tm_heap's alignment, and small: what is read through a word with these bits
 * still lies in the twin.
 */
#define TM_HEAP_BUSY_BIT ((uintptr_t)2048)
#define TM_HEAP_STOLEN_BIT ((uintptr_t)4096)
#define TM_HEAP_BUSY (TM_HEAP_TWIN | TM_HEAP_BUSY_BIT)
#define TM_HEAP_STOLEN (TM_HEAP_TWIN | TM_HEAP_STOLEN_BIT)
#define TM_HEAP_BITS (TM_HEAP_BUSY | TM_HEAP_STOLEN)
/* Value of `self` for inherit.h. No granule's owner equals it, with or without TM_OWNER_BITS. */
#define TM_HEAP_INHERITED ((uintptr_t)32)
/* [owner] Room in the stride for the layer above; zeros at first. */
#define TM_HEAP_ROOM_OFFSET ((size_t)44 << 10)
#define TM_HEAP_ROOM_BYTES (TM_HEAP_TWIN - TM_HEAP_ROOM_OFFSET)
#define TM_HEAP_LIMIT 8192u
#define TM_ROWS_OFFSET ((size_t)TM_HEAP_LIMIT * TM_HEAP_STRIDE)
#define TM_HEAP_KEY_SLOTS 16384u
#define TM_HEAP_HEIGHTS 256u
#define TM_HEAP_ROWS 4096u /* ids have 12 bits */

/* A free slot. `entry`: the address of its side entry, if spans have entries. */
struct tm_slot {
	struct tm_slot *next;
	void *entry;
};

/* One row of the account: what one call site allocated in this heap. Written by the owner only. */
struct tm_row {
	/* see account.h; 0: unused. Adjusted to the stack of a thread that adopts the heap. */
	uint64_t key;
	uint64_t objects;   /* allocated since the heap's birth */
	uint64_t bytes;     /* requested */
	uint64_t site : 48; /* return address; 0 in row 0 */
	/* of the stack, in units of 16 bytes, at most 1 MiB - 16; 0: the row is for all heights */
	uint64_t height : 16;
};

struct tm_arena_block;
struct tm_batch;
struct tm_look;
struct tm_outbox;

enum tm_heap_state {
	TM_HEAP_UNUSED,
	TM_HEAP_OWNED,
	TM_HEAP_ORPHAN,
	TM_HEAP_ANNEX, /* never belongs to a thread, see annex.h */
};

struct tm_heap {
	struct tm_slot *list[TM_LISTS]; /* [owner] by class; the last one is the arena's */
	uintptr_t self;         /* own address; 0 in a raw fork's child; or TM_HEAP_INHERITED */
	uintptr_t stack_top;    /* [owner] heights are counted from here */
	uint64_t key_mask;      /* [owner] key slots in use - 1 */
	union {                 /* [owner] birth epoch of new objects, in place as in entries: */
		uint64_t birth; /* in bits 16..23, */
		uint8_t birth_byte[8]; /* that is the third byte */
	};
	uint32_t key_misses;       /* [owner] misses since the key table grew */
	uint32_t rows;             /* [owner] rows in use, row 0 included */
	uint32_t span_first;       /* [owner] list of all spans, by granule reference */
	uint32_t span_count;       /* [owner] spans in that list */
	uint32_t first_slot_frees; /* [owner] since the last trim: hints that spans may be empty */
	uint32_t current[TM_CLASSES]; /* [owner] by class: the span being carved, by reference */
	struct tm_heap *next;         /* [heaps lock] list of all heaps, never unlinked */
	/* [atomic] bytes that other threads freed into an orphan or annex since its last trim */
	_Atomic size_t orphan_freed;
	struct tm_heap *next_orphan; /* [heaps lock] */
	uintptr_t *tls_word;         /* [const while owned] the owner's TLS word */
	_Atomic uint32_t state;      /* [heaps lock] enum tm_heap_state */
	_Atomic uint32_t stolen;     /* [atomic] not 0: the helper holds it, see steal.c */
	int32_t tid;                 /* [const while owned] */
	uint32_t index;              /* [const] */
	uint64_t idle_mark;          /* [helper] signature of the lists at the last look */
	uint64_t trimmed_mark;       /* [helper] and after the last trim; 1: trimmed as an orphan */
	/* [owner] from this many spans on, free spans are looked for before another is taken */
	uint32_t look_spans;
	uint64_t next_growth_ns;  /* [owner] earliest time of the next look before growth */
	uint64_t next_look_ms;    /* [owner] earliest next trim: trims may cost 2 % of the time */
	struct tm_outbox *outbox; /* [owner] magazines for other heaps; NULL: none yet */
	struct tm_arena_block *arena_first;   /* [owner] list of arena blocks, newest first */
	struct tm_arena_block *arena_current; /* [owner] block that new objects go to, or NULL */
	struct tm_arena_block *arena_rover;   /* [owner] where the next search for a hole begins */
	struct tm_arena_block *arena_spare;   /* [owner] unused records */
	struct tm_arena_block *arena_aged;    /* [owner] where the next check of ages begins */
	struct tm_arena_block *census_block;  /* [owner] next ones that a census counts, */
	uint32_t census_span;                 /* [owner] see shim/routing.c */
	uint32_t arena_epoch;                 /* [owner] see arena.h */
	uint32_t arena_blocks;                /* [owner] */
	uint32_t arena_look;                  /* [owner] as look_spans, for arena_blocks */
	uint32_t inherited_frees;             /* [owner] frees since the fork, see inherit.h */
	uint64_t inherited_done[2];           /* [owner] bit per class, see inherit.h */
	int32_t medium_left; /* [owner] requests above 1 KiB until one takes the slow path */
	/* [owner] frees of arena objects until tm_arena_noted is called */
	int32_t arena_left;
	uint8_t tier;         /* [const] tier of an annex's spans; TM_TIER_ALL: by phase */
	uint8_t part;         /* [const] enum tm_part of its spans */
	struct tm_look *look; /* [owner] NULL: no look was made yet */
	uint8_t *seen;        /* [owner] see account.c; NULL: fewer rows are in use */
	uint64_t look_ns;     /* [owner] time that the last look has taken so far */
	uint8_t look_state;   /* [owner, atomic] enum tm_look_state, see look.h */
	uint32_t trim_rest;   /* [owner] slots that the last trim or look examined and left */
	uint64_t trim_looks;  /* [owner] slots examined by all of them */
	/* [owner] what a drain left of the two below, for the next one */
	_Atomic(struct tm_slot *) remote_rest;
	_Atomic(struct tm_batch *) batches_rest;
	TM_ALIGNED(TM_CACHE_LINE)
	_Atomic(struct tm_slot *) remote;    /* [atomic] chain of slots pushed by other threads */
	_Atomic(struct tm_batch *) batches;  /* [atomic] the same in batches, see remote.h */
	_Atomic(struct tm_batch *) returned; /* [atomic] its own batches, emptied by others */
	TM_ALIGNED(TM_CACHE_LINE)
	uint8_t heights[TM_HEAP_HEIGHTS]; /* [owner] by hash: new heights seen of a site */
	TM_ALIGNED(2048)
	uint16_t key_slot[TM_HEAP_KEY_SLOTS]; /* [owner] key hash -> row number * 16 */
	/*
	 * [owner] By row: the lists that its requests above 1 KiB are served from, as an offset
	 * from the heap's address: 0, TM_ARENA_LISTS or TM_RULED_LISTS.
	 */
	uint16_t lists_of_row[TM_HEAP_ROWS];
	/* [owner] freed arena objects by class, from TM_SMALL_CLASSES on; see arena.h */
	struct tm_slot *arena[TM_LISTS];
	struct tm_slot *ruled[TM_MEDIUM_CLASSES]; /* always empty */
};

/* lists_of_row of a row of which each request must ask the rules: lists without a slot. */
#define TM_RULED_LISTS                                                                             \
	(offsetof(struct tm_heap, ruled) - TM_SMALL_CLASSES * sizeof(struct tm_slot *))

_Static_assert(offsetof(struct tm_heap, key_slot) == 2048,
	       "the first 1024 key slots share the hot page");
_Static_assert(offsetof(struct tm_heap, list) == 0, "lists_of_row");
_Static_assert(sizeof(struct tm_heap) <= TM_HEAP_ROOM_OFFSET, "room and twin lie behind the heap");

/*
 * The thread's word. While a thread has no heap it points at lists that are always empty
 * (tm_heap_word_none).
 */
extern TM_HIDDEN TM_TLS uintptr_t tm_heap_word;
bool tm_heap_word_is_none(uintptr_t word);
uintptr_t tm_heap_word_none(void);

/* The heap of a word that is not tm_heap_word_none. */
TM_INLINE struct tm_heap *tm_heap_of_word(uintptr_t word)
{
	return (struct tm_heap *)(word & ~TM_HEAP_BITS);
}

/* A reference to a granule in 32 bits; 0 is none. */
TM_INLINE uint32_t tm_granule_ref(const struct tm_granule *g)
{
	return (uint32_t)(g - tm_zone.granules) + 1;
}

TM_INLINE struct tm_granule *tm_granule_at(uint32_t ref)
{
	return ref == 0 ? NULL : tm_zone.granules + (ref - 1);
}

TM_INLINE struct tm_row *tm_heap_rows(uintptr_t heap)
{
	return (struct tm_row *)(heap + TM_ROWS_OFFSET);
}

/* At boot, before any thread. 0 or -errno. */
int tm_heap_init(void);

/* The heap shared by threads that may not own one. The caller holds the lock of thread.c. */
struct tm_heap *tm_heap_shared(void);
/* The same after a thread that vanished left the shared heap half changed: makes a new one. */
struct tm_heap *tm_heap_shared_anew(void);

/*
 * The annex of a tier, whose spans come from `part`; NULL without memory. The caller holds the
 * annex's lock (annex.c) if it uses the heap. The second form makes a new one, as above.
 */
struct tm_heap *tm_heap_annex(enum tm_tier tier, enum tm_part part);
struct tm_heap *tm_heap_annex_anew(enum tm_tier tier, enum tm_part part);

/* The owner gives the heap up as it is: it will not be adopted. */
void tm_heap_forsake(struct tm_heap *h);

/*
 * The same for all heaps of a thread that ends, except `but` (or NULL): its TLS word becomes
 * invalid.
 */
void tm_heap_forsake_all(const uintptr_t *tls_word, const struct tm_heap *but);

/*
 * Get a heap for the calling thread: an orphan with its contents, or a new one. NULL without
 * memory. The caller publishes it by storing its address into its TLS word.
 */
struct tm_heap *tm_heap_adopt(uintptr_t *tls_word, int32_t tid, uintptr_t stack_top);

/* The owner ends: the heap becomes an orphan, with its contents, for the next thread. */
void tm_heap_orphan(struct tm_heap *h);

/*
 * Move some of an orphan's spans of a class, with free slots, to this heap. False: none were found.
 */
bool tm_heap_take_from_orphans(struct tm_heap *h, unsigned klass);

/* The same for some of its arena blocks. */
bool tm_heap_take_arenas_from_orphans(struct tm_heap *h);

/*
 * Count bytes that were handed over to this heap. If it is an orphan or an annex, nobody else
 * collects them, so once there are enough its free spans go back to their part. The caller holds no
 * lock that ranks below the heaps lock.
 */
void tm_heap_freed_for(struct tm_heap *h, size_t bytes);

/* [const after boot] Address of the first heap's stride. */
uintptr_t tm_heap_base(void);

/*
 * While heaps' memory is shared with a ledger, a child that no fork handler sees must not use it:
 * the kernel wipes its heaps (MADV_WIPEONFORK), so their self is 0. The handlers keep them for a
 * child of fork.
 */
enum tm_heap_wipe { TM_HEAP_WIPE, TM_HEAP_KEEP };
void tm_heap_wipe_on_fork(enum tm_heap_wipe wipe);

/* In such a child: forget the wiped heaps; new ones are made. */
void tm_heap_forget_all(void);

/* Spans and arena blocks that the heap has: whether a trim is worth it. Any thread; a hint. */
TM_INLINE uint32_t tm_heap_size(const struct tm_heap *h)
{
	return h->span_count + h->arena_blocks;
}

/* Number of heaps, owned or not. Takes no lock. */
uint32_t tm_heap_count(void);

/* [heaps lock] The first orphan; the others by next_orphan. */
struct tm_heap *tm_heap_orphan_first(void);

/* The newest heap; the others by next. Takes no lock. */
struct tm_heap *tm_heap_first(void);

/* Call `visit` for every heap. Takes no lock. */
void tm_heap_each(void (*visit)(struct tm_heap *h, void *arg), void *arg);

/* In a fork's child: heaps of threads that are gone become orphans. */
void tm_heap_fork_child(struct tm_heap *mine);
void tm_heap_lock(void);
void tm_heap_unlock(void);

/* The same while heaps are trimmed: meanwhile nothing is taken from orphans. [trim lock] */
void tm_heap_lock_long(void);
void tm_heap_unlock_long(void);

/* Check the invariants above while the owner stands still: 0, or the first line that failed. */
int tm_heap_check(const struct tm_heap *h);

#endif
