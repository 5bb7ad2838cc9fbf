/* SPDX-License-Identifier: MIT */
/*
 * H32: TIERMALLOC_ALIGN=64 makes every block 64-aligned, so that code which wrongly relies on
 * it can be told from code that is broken otherwise. Failure: a block at 16 only.
 */
#include "claim.h"

int main(int argc, char **argv)
{
	if (!claim_ours())
		return claim_skip("the switch is ours");
	if (argc < 2) {
		static struct claim_output out;
		static const char *const aligns[] = {"64", "4096"};
		for (int i = 0; i < 2; i++) {
			setenv("TIERMALLOC_ALIGN", aligns[i], 1);
			int status = claim_again(claim_preload(), aligns[i], &out);
			if (strstr(out.text, "has no effect"))
				return claim_skip("this build has no TIERMALLOC_ALIGN");
			claim(status == 0, "ALIGN=%s: %d, %.300s", aligns[i], status, out.text);
		}
		return claim_end();
	}
	size_t align = strtoul(argv[1], NULL, 10);
	for (size_t size = 1; size < 300000; size += 1 + size / 16) {
		void *p[3] = {malloc(size), calloc(1, size), realloc(malloc(5), size)};
		for (int i = 0; i < 3; i++) {
			claim(p[i] && (uintptr_t)p[i] % align == 0, "size %zu: %p", size, p[i]);
			if (p[i])
				memset(p[i], 1, size);
		}
		for (int i = 0; i < 3; i++)
			free(p[i]);
	}
	return claim_end();
}
