/* SPDX-License-Identifier: MIT */
/*
 * heap: a thread's own supply of slots.
 *
 * A heap is owned by one thread, or by nobody (an orphan, whose thread is gone). Only the owner
 * touches it, without locks, except for `remote` and `batches`, where any thread pushes slots that it
 * frees for the owner, and `returned`. A thread finds its heap by one TLS word. While the owner is
 * inside an allocation function the word has TM_HEAP_BUSY set: it then points into the heap's twin,
 * whose lists are always empty, so that a signal handler that allocates meanwhile comes to the slow
 * path and is served from elsewhere (H66). While the helper has the heap of a sleeping thread it has
 * TM_HEAP_STOLEN set, which leads to the twin as well. The owner changes the word by plain stores,
 * from what it loaded before: it may set STOLEN again after the helper has cleared it. So STOLEN alone
 * means no more than that h->stolen has to be asked; BUSY is the owner's alone.
 *
 * Address layout, one stride of TM_HEAP_STRIDE per heap:
 *   heap + 0               hot page: lists, key table (its first quarter)
 *   heap + TM_HEAP_ROOM_OFFSET  what the layer above keeps (shim/routing.c)
 *   heap + TM_HEAP_TWIN    the twin: zero pages, never written
 *   heap + TM_ROWS_OFFSET  the account's rows of this heap, in memory that may be a shared file
 *
 * Invariants (tm_heap_check): every slot on a list belongs to a span of this heap and of that class;
 * no slot is on two lists; a span's carved count covers every slot that was ever handed out.
 * Order of stores: losing a slot when a thread vanishes in the middle (fork) is allowed, having it
 * twice never is. So what takes slots away from their source is stored before what offers them.
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
/* Aligned like a heap, and small: what is read through such a word still lies in the twin. */
#define TM_HEAP_BUSY_BIT ((uintptr_t)2048)
#define TM_HEAP_STOLEN_BIT ((uintptr_t)4096)
#define TM_HEAP_BUSY (TM_HEAP_TWIN | TM_HEAP_BUSY_BIT)
#define TM_HEAP_STOLEN (TM_HEAP_TWIN | TM_HEAP_STOLEN_BIT)
#define TM_HEAP_BITS (TM_HEAP_BUSY | TM_HEAP_STOLEN)
/* In place of `self`: see inherit.h. No owner of a granule looks like it, with TM_OWNER_BITS or without. */
#define TM_HEAP_INHERITED ((uintptr_t)32)
/* Room in the stride for what the layer above keeps per heap; zeros at first. [owner] */
#define TM_HEAP_ROOM_OFFSET ((size_t)44 << 10)
#define TM_HEAP_ROOM_BYTES (TM_HEAP_TWIN - TM_HEAP_ROOM_OFFSET)
#define TM_HEAP_LIMIT 8192u
#define TM_ROWS_OFFSET ((size_t)TM_HEAP_LIMIT * TM_HEAP_STRIDE)
#define TM_HEAP_KEY_SLOTS 16384u
#define TM_HEAP_HEIGHTS 256u
#define TM_HEAP_ROWS 4096u /* ids have 12 bits */

/* A free slot. `entry` is where the account keeps the slot's side entry (account on). */
struct tm_slot {
	struct tm_slot *next;
	void *entry;
};

/* One row of the account: what one call site did in this heap. 32 bytes, written by the owner only. */
struct tm_row {
	uint64_t key; /* see account.h; 0: unused. Moves with the heap to another thread's stack. */
	uint64_t objects;     /* allocated since the heap's birth */
	uint64_t bytes;       /* requested */
	uint64_t site : 48;   /* return address; 0 in row 0 */
	uint64_t height : 16; /* of the stack, in 16 bytes, cut at 1 MiB - 16; 0: not told apart */
};

struct tm_arena_block;
struct tm_batch;
struct tm_outbox;

enum tm_heap_state {
	TM_HEAP_UNUSED,
	TM_HEAP_OWNED,
	TM_HEAP_ORPHAN,
	TM_HEAP_ANNEX, /* of no thread, for good: see annex.h */
};

struct tm_heap {
	struct tm_slot *list[TM_LISTS]; /* [owner] by class; the last one is the arena's */
	uintptr_t self;                /* own address; 0 in a raw fork's child; TM_HEAP_INHERITED */
	uintptr_t stack_top;           /* [owner] heights are counted from here */
	uint64_t key_mask;             /* [owner] key slots in use - 1 */
	union {                        /* [owner] birth epoch of new objects, as entries have it: */
		uint64_t birth;        /* bits 16..23, or */
		uint8_t birth_byte[8]; /* the third byte */
	};
	uint32_t key_misses;       /* [owner] since the key table grew */
	uint32_t rows;             /* [owner] rows in use, row 0 included */
	uint32_t span_first;       /* [owner] all spans, by granule reference */
	uint32_t span_count;       /* [owner] */
	uint32_t parked_spans;     /* [owner] spans with parked slots */
	uint32_t first_slot_frees; /* [owner] since the last trim: says that spans may be empty */
	uint32_t current[TM_CLASSES]; /* [owner] the span that is being carved, by reference */
	struct tm_heap *next;         /* [heaps lock] registry, never unlinked */
	_Atomic size_t orphan_freed;  /* [atomic] bytes others freed into it, an orphan or an
					annex, since it was looked at */
	struct tm_heap *next_orphan;  /* [heaps lock] */
	uintptr_t *tls_word;          /* [const while owned] the owner's TLS word */
	_Atomic uint32_t state;       /* [heaps lock] enum tm_heap_state */
	_Atomic uint32_t stolen;      /* [atomic] not 0: the helper works on it, see steal.c */
	int32_t tid;                  /* [const while owned] */
	uint32_t index;               /* [const] */
	uint64_t idle_mark;           /* [helper] what its lists looked like at the last look */
	uint64_t trimmed_mark;        /* [helper] and after the last trim; 1: trimmed orphan */
	uint32_t look_spans; /* [owner] with so many spans, free ones are looked for before more */
	uint64_t next_growth_ns;  /* [owner] not before, for looks before the heap grows */
	uint64_t next_look_ms;    /* [owner] not before: looks may cost 2 % of the time */
	struct tm_outbox *outbox; /* [owner] what it collects for other heaps; NULL: nothing ever */
	struct tm_arena_block *arena_first;   /* [owner] newest first */
	struct tm_arena_block *arena_current; /* [owner] where objects go, or NULL */
	struct tm_arena_block *arena_rover;   /* [owner] where the next search begins */
	struct tm_arena_block *arena_spare;   /* [owner] records without a block */
	struct tm_arena_block *arena_aged;    /* [owner] where the next look at ages begins */
	uint32_t arena_epoch;                 /* [owner] see arena.h */
	uint32_t arena_blocks;                /* [owner] */
	uint32_t arena_look;      /* [owner] with so many, free spans are looked for before more */
	uint32_t inherited_frees; /* [owner] see inherit.h */
	uint64_t inherited_done[2]; /* [owner] by class */
	int32_t medium_left;        /* [owner] requests above 1 KiB until the slow path is asked */
	int32_t arena_left;  /* [owner] frees of arenas' objects that are only noted until then */
	uint8_t tier;        /* [const] of an annex, of its spans; TM_TIER_ALL: the phase's */
	uint8_t part;        /* [const] enum tm_part that its spans come from */
	uint32_t trim_rest;  /* [owner] of the slots that the last trim looked at, those it left */
	uint64_t trim_looks; /* [owner] slots that all trims looked at */
	TM_ALIGNED(TM_CACHE_LINE) _Atomic(struct tm_slot *) remote; /* [atomic] pushed by anyone */
	_Atomic(struct tm_batch *) batches;  /* [atomic] the same, see remote.h */
	_Atomic(struct tm_batch *) returned; /* [atomic] its own batches, emptied by others */
	TM_ALIGNED(TM_CACHE_LINE)
	uint8_t heights[TM_HEAP_HEIGHTS]; /* [owner] how often a site was seen at a new height */
	TM_ALIGNED(2048)
	uint16_t key_slot[TM_HEAP_KEY_SLOTS]; /* [owner] key hash -> row number * 16 */
	/*
	 * [owner] Which lists a row's requests above 1 KiB are served from: 0, TM_ARENA_LISTS, or
	 * TM_RULED_LISTS. Bytes from the heap's address.
	 */
	uint16_t lists_of_row[TM_HEAP_ROWS];
	struct tm_slot
		*arena[TM_LISTS]; /* [owner] by class, from TM_SMALL_CLASSES on; see arena.h */
	struct tm_slot *ruled[TM_MEDIUM_CLASSES]; /* always empty */
};

/* lists_of_row of a row whose requests ask the rules, each of them: lists without a slot. */
#define TM_RULED_LISTS                                                                             \
	(offsetof(struct tm_heap, ruled) - TM_SMALL_CLASSES * sizeof(struct tm_slot *))

_Static_assert(offsetof(struct tm_heap, key_slot) == 2048,
	       "the first 1024 key slots share the hot page");
_Static_assert(offsetof(struct tm_heap, list) == 0, "lists_of_row");
_Static_assert(sizeof(struct tm_heap) <= TM_HEAP_ROOM_OFFSET, "room and twin lie behind the heap");

/* The word of a thread that has no heap (yet, or any more) points here: lists that are always empty. */
extern TM_HIDDEN TM_TLS uintptr_t tm_heap_word;
bool tm_heap_word_is_none(uintptr_t word);
uintptr_t tm_heap_word_none(void);

/* Of a word that is not none, the heap. */
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

/* Before any thread: 0 or -errno. */
int tm_heap_init(void);

/* The shared heap: for threads that may not own one. Its users hold the lock of thread.c. */
struct tm_heap *tm_heap_shared(void);
/* The last one is half changed by a thread that vanished: another one. */
struct tm_heap *tm_heap_shared_anew(void);

/*
 * The annex of a tier, whose spans come from `part`; NULL without memory. Its users hold the lock of
 * annex.c. The second form as above.
 */
struct tm_heap *tm_heap_annex(enum tm_tier tier, enum tm_part part);
struct tm_heap *tm_heap_annex_anew(enum tm_tier tier, enum tm_part part);

/* Nobody's any more, and for nobody: its owner gives it up as it is. */
void tm_heap_forsake(struct tm_heap *h);

/* All that a thread which ends still owns but this one (or NULL): its word is memory no longer. */
void tm_heap_forsake_all(const uintptr_t *tls_word, const struct tm_heap *but);

/*
 * A heap for the calling thread: an orphan with its contents, or a new one. NULL without memory.
 * The caller publishes it by storing its address into its TLS word.
 */
struct tm_heap *tm_heap_adopt(uintptr_t *tls_word, int32_t tid, uintptr_t stack_top);

/* The owner is going away: everything stays in the heap for the next thread. */
void tm_heap_orphan(struct tm_heap *h);

/* Move an orphan's spans of a class, with its free slots, to this heap. False if none has any. */
bool tm_heap_take_from_orphans(struct tm_heap *h, unsigned klass);

/* The same of their arenas. */
bool tm_heap_take_arenas_from_orphans(struct tm_heap *h);

/*
 * So many bytes were handed over to this heap. If its thread is gone, nobody takes them up, so that
 * now and then its free spans are given to all. Off the caller's own locks.
 */
void tm_heap_freed_for(struct tm_heap *h, size_t bytes);

/* Where heap 0 may lie. [const after boot] */
uintptr_t tm_heap_base(void);

/*
 * While memory of heaps is shared with a ledger, a child that no fork handler sees must not use it:
 * its heaps are wiped, whose self is 0 then. The handlers keep them for a child of fork.
 */
enum tm_heap_wipe { TM_HEAP_WIPE, TM_HEAP_KEEP };
void tm_heap_wipe_on_fork(enum tm_heap_wipe wipe);

/* In such a child: what there was is lost, new heaps follow. */
void tm_heap_forget_all(void);

/* What it has, spans and blocks of its arena alike: whether a look is worth it. Any thread; a hint. */
TM_INLINE uint32_t tm_heap_size(const struct tm_heap *h)
{
	return h->span_count + h->arena_blocks;
}

/* Heaps that exist, owned or not; no lock. */
uint32_t tm_heap_count(void);

/* [heaps lock] The first of the orphans (next_orphan). */
struct tm_heap *tm_heap_orphan_first(void);

/* The newest heap; the others by next. No lock. */
struct tm_heap *tm_heap_first(void);

/* Walk every heap; the callback runs under the heaps lock. */
void tm_heap_each(void (*visit)(struct tm_heap *h, void *arg), void *arg);

/* After a fork in the child: heaps of threads that are gone become orphans. */
void tm_heap_fork_child(struct tm_heap *mine);
void tm_heap_lock(void);
void tm_heap_unlock(void);

/* Every invariant above that can be checked while the owner stands still; 0 or the first line that failed. */
int tm_heap_check(const struct tm_heap *h);

#endif
