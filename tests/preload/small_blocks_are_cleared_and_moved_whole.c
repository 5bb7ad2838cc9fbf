/* SPDX-License-Identifier: MIT */
/* calloc and realloc of small sizes work in place, by vectors: every size, beside neighbours that stay. */
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SIZES 160

static int all_are(const unsigned char *p, size_t bytes, unsigned char value)
{
	for (size_t i = 0; i < bytes; i++)
		if (p[i] != value)
			return 0;
	return 1;
}

/* Slots that were in use before are not zero. */
static void make_dirty(size_t size)
{
	void *p[64];

	for (int i = 0; i < 64; i++) {
		p[i] = malloc(size);
		memset(p[i], 0xa5, malloc_usable_size(p[i]));
	}
	for (int i = 0; i < 64; i++)
		free(p[i]);
}

static int clears(size_t size)
{
	unsigned char *p[32];
	int good = 1;

	for (int i = 0; i < 32; i++) {
		p[i] = calloc(1, size);
		good &= p[i] != NULL && all_are(p[i], size, 0);
		memset(p[i], 0x40 + i, size);
	}
	for (int i = 0; i < 32; i++) {
		good &= all_are(p[i], size, (unsigned char)(0x40 + i));
		free(p[i]);
	}
	return good;
}

static int moves(size_t from, size_t to)
{
	size_t kept = from < to ? from : to;
	unsigned char *before = malloc(to), *p = malloc(from), *after = malloc(to),
		      *near = malloc(from);
	int good;

	memset(before, 1, to);
	memset(near, 2, from);
	memset(after, 3, to);
	for (size_t i = 0; i < from; i++)
		p[i] = (unsigned char)(i + 7);
	p = realloc(p, to);
	good = p != NULL && ((uintptr_t)p & 15) == 0;
	for (size_t i = 0; i < kept; i++)
		good &= p[i] == (unsigned char)(i + 7);
	memset(p, 4, to);
	good &= all_are(before, to, 1) && all_are(near, from, 2) && all_are(after, to, 3);
	free(p);
	free(near);
	free(after);
	free(before);
	return good;
}

int main(void)
{
	for (size_t size = 1; size <= SIZES; size++) {
		make_dirty(size);
		if (!clears(size))
			return 1;
		for (size_t to = 1; to <= SIZES; to++)
			if (!moves(size, to))
				return 2;
	}
	volatile size_t many = SIZE_MAX / 2;
	return calloc(many, 3) != NULL ? 3 : 0;
}
