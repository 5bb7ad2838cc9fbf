/* SPDX-License-Identifier: MIT */
#include "shim/heap/size_class.h"

#include "shim/base/attrs.h"

#define RECIP(b, shift) (uint32_t)(((UINT64_C(1) << (shift)) + (b)-1) / (b))
#define CHARGE(b) (uint16_t)((b) < 1024 ? 1024 : (b) > 32768 ? 32768 : (b))
#define SHAPE(b, g, shift)                                                                         \
	{                                                                                          \
		(b), (uint16_t)((g)*TM_GRANULE_BYTES / (b)), (g), RECIP(b, shift), CHARGE(b)       \
	}

/* Spans of classes up to 1 KiB are one granule, so that 16 bits hold a slot's offset. */
#define SMALL(n) SHAPE((n)*16u, 1, TM_RECIP_SHIFT_SMALL)
#define SMALL8(n)                                                                                  \
	SMALL((n) + 1), SMALL((n) + 2), SMALL((n) + 3), SMALL((n) + 4), SMALL((n) + 5),            \
		SMALL((n) + 6), SMALL((n) + 7), SMALL((n) + 8)

/* Spans of larger slots hold at least eight of them and waste at most a sixteenth at their end. */
#define MEDIUM(b, g) SHAPE(b, g, TM_RECIP_SHIFT_MEDIUM)
#define MEDIUM8(base, g)                                                                           \
	MEDIUM((base) / 8 * 9, g), MEDIUM((base) / 8 * 10, g), MEDIUM((base) / 8 * 11, g),         \
		MEDIUM((base) / 8 * 12, g), MEDIUM((base) / 8 * 13, g),                            \
		MEDIUM((base) / 8 * 14, g), MEDIUM((base) / 8 * 15, g), MEDIUM((base) / 8 * 16, g)

const struct tm_class_shape tm_class_shape[TM_LISTS] = {
	SMALL(1), /* class 0 */
	SMALL8(0),
	SMALL8(8),
	SMALL8(16),
	SMALL8(24),
	SMALL8(32),
	SMALL8(40),
	SMALL8(48),
	SMALL8(56),
	MEDIUM8(1024u, 1),
	MEDIUM8(2048u, 1),
	MEDIUM8(4096u, 2),
	MEDIUM8(8192u, 4),
	MEDIUM8(16384u, 8),
	MEDIUM8(32768u, 8),
	{256, 256, 1, RECIP(256, TM_RECIP_SHIFT_MEDIUM), CHARGE(8192)}, /* TM_ARENA_CLASS */
};

#define X1(k) (k)
#define X2(k) X1(k), X1(k)
#define X4(k) X2(k), X2(k)
#define X8(k) X4(k), X4(k)
#define X16(k) X8(k), X8(k)
#define X32(k) X16(k), X16(k)
#define EIGHT(x, k)                                                                                \
	x(k), x((k) + 1), x((k) + 2), x((k) + 3), x((k) + 4), x((k) + 5), x((k) + 6), x((k) + 7)

const uint8_t tm_class_medium[] = {
	X8(TM_SMALL_CLASSES - 1), /* small sizes are not looked up here */
	EIGHT(X1, TM_SMALL_CLASSES),       EIGHT(X2, TM_SMALL_CLASSES + 8),
	EIGHT(X4, TM_SMALL_CLASSES + 16),  EIGHT(X8, TM_SMALL_CLASSES + 24),
	EIGHT(X16, TM_SMALL_CLASSES + 32), EIGHT(X32, TM_SMALL_CLASSES + 40),
};

unsigned tm_class_of_aligned(size_t size, size_t align)
{
	size_t bytes = (size + align - 1) & ~(align - 1);

	if (size > TM_SLOT_MAX || bytes > TM_SLOT_MAX || align > 4096)
		return TM_CLASSES;
	if (bytes == 0)
		bytes = align;
	unsigned klass = tm_class_of(bytes);
	while (klass < TM_CLASSES && (tm_class_bytes(klass) & (align - 1)) != 0)
		klass++;
	return klass;
}
