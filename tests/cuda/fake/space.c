/* SPDX-License-Identifier: MIT */
/*
 * space: handles, address ranges and addresses. Handles lie at fixed addresses and are used again,
 * last freed first, as the real driver does: who keys by a context's handle alone is found out.
 */
#include "tests/cuda/fake/fake.h"

#include <sys/mman.h>

/* --- handles ---------------------------------------------------------------------------------- */

#define OBJECT_BYTES ((size_t)256 << 20)
#define OBJECT_CLASSES 64 /* of 32 bytes */

static char *object_base, *object_next;
static void *object_idle[OBJECT_CLASSES];

void *fake_object(enum fake_magic magic, size_t bytes)
{
	size_t class = (bytes + 31) / 32;
	void *object = object_idle[class];
	if (object_base == NULL) {
		object_base = mmap(
			(void *)FAKE_OBJECT_BASE, OBJECT_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
		if (object_base == MAP_FAILED)
			abort();
		object_next = object_base + 64;
	}
	if (object != NULL) {
		memcpy(&object_idle[class], (char *)object + 8, sizeof(void *));
	} else {
		object = object_next;
		object_next += class * 32;
		if (object_next > object_base + OBJECT_BYTES)
			abort();
	}
	memset(object, 0, class * 32);
	memcpy(object, &magic, sizeof(magic));
	return object;
}

bool fake_is(const void *handle, enum fake_magic magic)
{
	uintptr_t at = (uintptr_t)handle;
	enum fake_magic found;
	if (object_base == NULL || at < (uintptr_t)object_base || at >= (uintptr_t)object_next ||
	    at % 32)
		return false;
	memcpy(&found, handle, sizeof(found));
	return found == magic;
}

void fake_object_free(void *handle, size_t bytes)
{
	size_t class = (bytes + 31) / 32;
	memset(handle, 0, class * 32);
	memcpy((char *)handle + 8, &object_idle[class], sizeof(void *));
	object_idle[class] = handle;
}

/* --- ranges: a treap by start ----------------------------------------------------------------- */

struct fake_tree fake_ranges, fake_reserves;
static uint32_t weights = 12345;

static void split(struct fake_range *node, CUdeviceptr at, struct fake_range **low,
		  struct fake_range **high)
{
	if (node == NULL) {
		*low = *high = NULL;
	} else if (node->start < at) {
		*low = node;
		split(node->right, at, &node->right, high);
	} else {
		*high = node;
		split(node->left, at, low, &node->left);
	}
}

static struct fake_range *join(struct fake_range *low, struct fake_range *high)
{
	if (low == NULL || high == NULL)
		return low == NULL ? high : low;
	if (low->weight > high->weight) {
		low->right = join(low->right, high);
		return low;
	}
	high->left = join(low, high->left);
	return high;
}

void fake_tree_add(struct fake_tree *tree, struct fake_range *range)
{
	struct fake_range *low, *high;
	weights = weights * 1664525u + 1013904223u;
	range->weight = weights;
	range->left = range->right = NULL;
	split(tree->root, range->start, &low, &high);
	tree->root = join(join(low, range), high);
	tree->count++;
}

void fake_tree_remove(struct fake_tree *tree, struct fake_range *range)
{
	struct fake_range **at = &tree->root;
	while (*at != NULL && *at != range)
		at = range->start < (*at)->start ? &(*at)->left : &(*at)->right;
	if (*at == NULL)
		abort();
	*at = join(range->left, range->right);
	tree->count--;
}

struct fake_range *fake_tree_find(const struct fake_tree *tree, CUdeviceptr at)
{
	struct fake_range *node = tree->root, *best = NULL;
	while (node != NULL) {
		if (node->start <= at) {
			best = node;
			node = node->right;
		} else {
			node = node->left;
		}
	}
	return best != NULL && at - best->start < best->bytes ? best : NULL;
}

struct fake_range *fake_tree_from(const struct fake_tree *tree, CUdeviceptr at)
{
	struct fake_range *node = tree->root, *best = NULL;
	while (node != NULL) {
		if (node->start >= at) {
			best = node;
			node = node->left;
		} else {
			node = node->right;
		}
	}
	return best;
}

struct fake_range *fake_find(CUdeviceptr at)
{
	struct fake_range *range = fake_tree_find(&fake_ranges, at);
	return range == NULL || range->idle || range->type == FAKE_ARRAY_MEMORY ? NULL : range;
}

struct fake_range *fake_range_new(enum fake_type type, CUdeviceptr start, size_t bytes)
{
	struct fake_range *range = calloc(1, sizeof(*range));
	if (range == NULL)
		abort();
	range->type = type;
	range->start = start;
	range->bytes = bytes;
	range->id = ++fake.next_id;
	return range;
}

/* --- addresses: a bit per unit ---------------------------------------------------------------- */

struct fake_va fake_device_va = {FAKE_DEVICE_BASE, NULL, 0, 0, 21};
struct fake_va fake_host_va = {FAKE_HOST_BASE, NULL, (size_t)64 << 18, 0, 12};

static bool taken(const struct fake_va *va, size_t unit)
{
	return va->map[unit / 64] >> (unit % 64) & 1;
}

static void mark(struct fake_va *va, size_t unit, size_t count, bool used)
{
	for (; count > 0; unit++, count--) {
		uint64_t bit = (uint64_t)1 << (unit % 64);
		va->map[unit / 64] = used ? va->map[unit / 64] | bit : va->map[unit / 64] & ~bit;
	}
}

CUdeviceptr fake_va_take(struct fake_va *va, size_t bytes, size_t align)
{
	size_t size = (size_t)1 << va->shift, count = (bytes + size - 1) >> va->shift;
	size_t step = align > size ? align >> va->shift : 1, at, run;
	if (va->map == NULL) {
		if (va->units == 0)
			va->units = fake.va_bytes >> va->shift;
		va->map = calloc(va->units / 64 + 1, 8);
		if (va->map == NULL)
			abort();
	}
	while (va->low < va->units && taken(va, va->low))
		va->low++;
	for (at = (va->low + step - 1) / step * step; at + count <= va->units;) {
		for (run = 0; run < count && !taken(va, at + run); run++)
			continue;
		if (run == count) {
			mark(va, at, count, true);
			return va->base + ((uint64_t)at << va->shift);
		}
		at = (at + run + 1 + step - 1) / step * step;
	}
	return 0;
}

void fake_va_give(struct fake_va *va, CUdeviceptr start, size_t bytes)
{
	size_t size = (size_t)1 << va->shift, unit = (size_t)(start - va->base) >> va->shift;
	mark(va, unit, (bytes + size - 1) >> va->shift, false);
	if (unit < va->low)
		va->low = unit;
}
