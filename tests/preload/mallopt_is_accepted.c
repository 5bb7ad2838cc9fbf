/* SPDX-License-Identifier: MIT */
/* cross: yes */
/*
 * H43: mallopt with each of glibc's parameters returns 1, as programs check, and the process runs
 * on; also from the start and while threads run. Failure: 0, or libc's second heap awakened.
 */
#include "claim.h"

#include <malloc.h>

int main(void)
{
	static const struct {
		int parameter, value;
	} set[] = {{M_MMAP_THRESHOLD, 1 << 20}, {M_TRIM_THRESHOLD, 128 << 10},
		   {M_TOP_PAD, 64 << 10},       {M_MMAP_MAX, 1000},
		   {M_CHECK_ACTION, 1},         {M_PERTURB, 0},
		   {M_ARENA_TEST, 2},           {M_ARENA_MAX, 1},
		   {M_TRIM_THRESHOLD, 0},       {M_MXFAST, 64},
		   {M_TRIM_THRESHOLD, -1}};
	void *top = sbrk(0);

	for (size_t i = 0; i < sizeof(set) / sizeof(*set); i++) {
		claim(mallopt(set[i].parameter, set[i].value) == 1, "mallopt(%d, %d)",
		      set[i].parameter, set[i].value);
		for (size_t size = 1; size < 4 << 20; size = size * 3 + 1) {
			char *p = malloc(size);
			claim(p, "malloc(%zu)", size);
			p[size - 1] = 1;
			free(p);
		}
	}
	if (claim_ours())
		claim(sbrk(0) == top, "libc's heap was awakened");
	return claim_end();
}
