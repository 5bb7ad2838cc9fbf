/* SPDX-License-Identifier: MIT */
/*
 * size_class: maps request size to class and slot size, and gives the shape of each class's spans.
 *
 * Classes 1..64 are multiples of 16 bytes up to 1 KiB (class 0 is the request of no bytes, served
 * as class 1). Classes 65..112 have eight steps per doubling up to 64 KiB, so that rounding wastes
 * at most an eighth. Larger requests are blocks of whole pages (large.h).
 *
 * Pure arithmetic and constant tables: any thread, any time.
 */
#ifndef TM_HEAP_SIZE_CLASS_H
#define TM_HEAP_SIZE_CLASS_H

#include "shim/base/attrs.h"

#define TM_SMALL_MAX ((size_t)1024)
#define TM_SLOT_MAX ((size_t)65536)
#define TM_SMALL_CLASSES 65 /* 0..64 */
#define TM_MEDIUM_CLASSES 48
#define TM_CLASSES (TM_SMALL_CLASSES + TM_MEDIUM_CLASSES)
/*
 * Not a class of requests but of arena blocks, whose slots are lines (arena.h). No size maps to it.
 */
#define TM_ARENA_CLASS TM_CLASSES
#define TM_LISTS (TM_CLASSES + 1)

struct tm_class_shape {
	uint32_t slot_bytes;
	uint16_t slots;    /* per span */
	uint16_t granules; /* per span */
	uint32_t recip;    /* ceil(2^TM_RECIP_SHIFT / slot_bytes), see tm_class_index */
	uint16_t charge;   /* bytes that a slot takes of a magazine's room, see remote.h */
};

extern TM_HIDDEN const struct tm_class_shape tm_class_shape[TM_LISTS];

/*
 * Division and divisibility by one multiplication (Lemire, Kaser, Kurz: "Faster remainder by direct
 * computation", 2019). Small classes: offsets below 2^16, sizes up to 2^10. Medium classes: sizes
 * are multiples of 128, offsets below 2^19, so seven more bits are exact. Unit-tested for every
 * offset of every class.
 */
#define TM_RECIP_SHIFT_SMALL 32
#define TM_RECIP_SHIFT_MEDIUM 39
#define TM_NO_INDEX UINT64_MAX

/* Index of the slot that starts at this offset in its span; TM_NO_INDEX: none does. */
TM_INLINE uint64_t tm_class_index(uint64_t offset, uint32_t recip, unsigned shift)
{
	uint64_t product = offset * recip;

	if (TM_UNLIKELY((product & ((UINT64_C(1) << shift) - 1)) >= recip))
		return TM_NO_INDEX;
	return product >> shift;
}

TM_INLINE unsigned tm_class_of_small(size_t size)
{
	return (unsigned)((size + 15) >> 4);
}

/* Class by steps of 128 bytes, of which all medium sizes are multiples. */
#define TM_MEDIUM_STEP_SHIFT 7
extern TM_HIDDEN const uint8_t tm_class_medium[TM_SLOT_MAX >> TM_MEDIUM_STEP_SHIFT];

/* size in 1025..65536 */
TM_INLINE unsigned tm_class_of_medium(size_t size)
{
	return tm_class_medium[(size - 1) >> TM_MEDIUM_STEP_SHIFT];
}

/* The last class. Its slots fill a granule each, so a granule's entry describes one slot. */
#define TM_SOLO_CLASS (TM_CLASSES - 1)
#define TM_SOLO_ABOVE (TM_SLOT_MAX / 16 * 15)

TM_INLINE unsigned tm_class_of(size_t size)
{
	return size <= TM_SMALL_MAX ? tm_class_of_small(size) : tm_class_of_medium(size);
}

TM_INLINE size_t tm_class_bytes(unsigned klass)
{
	return tm_class_shape[klass].slot_bytes;
}

/*
 * Whether all slots of the class of this size are aligned to `align` (a power of two up to 4096).
 */
TM_INLINE bool tm_class_is_aligned(size_t size, size_t align)
{
	return size != 0 && size <= TM_SLOT_MAX &&
	       (tm_class_bytes(tm_class_of(size)) & (align - 1)) == 0;
}

/*
 * The smallest class whose slots are all aligned to `align` (a power of two, at most 4096) and hold
 * `size` bytes; TM_CLASSES if there is none. Spans begin on a granule, so a slot size that is a
 * multiple of the alignment is enough.
 */
unsigned tm_class_of_aligned(size_t size, size_t align);

#endif
