/* SPDX-License-Identifier: MIT */
/* cross: yes */
/*
 * H34 H40: realloc up, down and in place keeps every byte that fits, from each allocating
 * function, through every size class, to large blocks and past 1 MiB where growth is by mapping.
 * Failure: a lost or foreign byte, or a neighbour that was written over.
 */
#include "claim.h"

#include <malloc.h>

static uint64_t seed = 7;

static size_t draw(size_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (size_t)(seed >> 33) % below;
}

static void fill(unsigned char *p, size_t from, size_t to, unsigned salt)
{
	for (size_t i = from; i < to; i++)
		p[i] = (unsigned char)((i * 2654435761u >> 13) + salt);
}

static void check(const unsigned char *p, size_t to, unsigned salt, const char *when)
{
	for (size_t i = 0; i < to; i++)
		if (p[i] != (unsigned char)((i * 2654435761u >> 13) + salt)) {
			claim(false, "%s: byte %zu of %zu", when, i, to);
			return;
		}
}

static void *start(unsigned how, size_t size)
{
	switch (how % 6) {
	case 0: return malloc(size);
	case 1: return calloc(1, size);
	case 2: return memalign(64, size);
	case 3: return memalign(4096, size);
	case 4: return valloc(size);
	default: return realloc(NULL, size);
	}
}

static void walk(unsigned salt, size_t greatest)
{
	size_t size = draw(300) + 1;
	unsigned char *p = start(salt, size), *pin = NULL;

	fill(p, 0, size, salt);
	for (int step = 0; step < 60; step++) {
		size_t next = draw(3) ? size + draw(size / 2 + 40) : draw(size) + 1;
		if (next > greatest)
			next = draw(greatest) + 1;
		unsigned char *q = realloc(p, next);
		claim(q, "realloc(%zu) failed", next);
		if (!q)
			break;
		check(q, size < next ? size : next, salt, "walk");
		fill(q, size < next ? size : next, next, salt);
		p = q;
		size = next;
		if (step % 7 == 0) { /* something in the way of the next step */
			free(pin);
			pin = malloc(draw(200) + 1);
		}
	}
	free(pin);
	free(p);
}

/* Buffers that grow side by side by a fixed step, as KV caches and logs do. */
static void side_by_side(size_t step, size_t rounds)
{
	unsigned char *p[8] = {0};

	for (size_t r = 1; r <= rounds; r++)
		for (unsigned i = 0; i < 8; i++) {
			p[i] = realloc(p[i], r * step);
			claim(p[i], "realloc(%zu)", r * step);
			fill(p[i], (r - 1) * step, r * step, i);
		}
	for (unsigned i = 0; i < 8; i++) {
		check(p[i], rounds * step, i, "side by side");
		p[i] = realloc(p[i], step);
		check(p[i], step, i, "shrunk");
		free(p[i]);
	}
}

int main(void)
{
	for (unsigned i = 0; i < 1500; i++)
		walk(i, i % 10 ? 4000 : 200000);
	for (unsigned i = 0; i < 6; i++)
		walk(i, 9 << 20);
	side_by_side(100, 400);
	side_by_side(4096, 200);
	side_by_side(300001, 20);
	return claim_end();
}
