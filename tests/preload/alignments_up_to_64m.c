/* SPDX-License-Identifier: MIT */
/* cross: yes */
/*
 * H33, log 62: every power of two up to 64 MiB is honoured for small and large sizes, several
 * blocks at once, also after realloc has moved one. Aligned blocks that are freed are used again.
 * Failure: a misaligned or overlapping block, or address space that only grows.
 */
#include "claim.h"

static const size_t sizes[] = {1, 16, 100, 4096, 5000, 65536, 100000, 1 << 20, (3 << 20) + 5};

struct block {
	unsigned char *at;
	size_t size;
};

static void one_alignment(size_t align)
{
	struct block block[3 * sizeof(sizes) / sizeof(*sizes)];
	size_t n = 0;

	for (size_t i = 0; i < sizeof(block) / sizeof(*block); i++) {
		void *p = NULL;
		size_t size = sizes[i / 3];
		int rc = posix_memalign(&p, align, size);
		claim(rc == 0 && p && (uintptr_t)p % align == 0, "align %zu, size %zu: %d, %p",
		      align, size, rc, p);
		if (!p)
			continue;
		block[n++] = (struct block){p, size};
		memset(p, (int)i + 1, size < 4096 ? size : 4096);
		((unsigned char *)p)[size - 1] = (unsigned char)(i + 1);
	}
	for (size_t i = 0; i < n; i++) {
		claim(block[i].at[0] == block[i].at[block[i].size - 1],
		      "align %zu: blocks of %zu overlap", align, block[i].size);
		if (i % 3 == 1) {
			unsigned char first = block[i].at[0];
			block[i].at = realloc(block[i].at, block[i].size * 2 + 1);
			claim(block[i].at && block[i].at[0] == first &&
				      block[i].at[block[i].size - 1] == first,
			      "align %zu: realloc lost bytes", align);
		}
		free(block[i].at);
	}
}

int main(void)
{
	for (size_t align = 8; align <= (size_t)64 << 20; align <<= 1)
		one_alignment(align);

	long before = claim_status_kib("VmSize:");
	for (int round = 0; round < 300; round++) {
		void *p[3];
		for (size_t i = 0; i < 3; i++)
			if (posix_memalign(&p[i], (size_t)2 << 20, (size_t)2 << 20))
				p[i] = NULL;
		for (size_t i = 0; i < 3; i++)
			free(p[i]);
	}
	long grown = claim_status_kib("VmSize:") - before;
	claim(grown < 65536 + 4096, "300 rounds of three aligned 2 MiB blocks: %ld KiB more",
	      grown);
	return claim_end();
}
