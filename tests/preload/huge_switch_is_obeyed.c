/* SPDX-License-Identifier: MIT */
/*
 * H58: TIERMALLOC_HUGE=never asks for no huge page, auto asks where memory is dense, always also
 * where it is sparse. Failure: the advice in the kernel's map is another one.
 */
#include "claim.h"

/* Whether the mapping of an address has a flag in /proc/self/smaps ("hg": advised, "nh": declined). */
static bool has_flag(const void *p, const char *flag)
{
	char line[1024], wanted[8];
	bool inside = false, found = false;
	FILE *maps = fopen("/proc/self/smaps", "re");

	snprintf(wanted, sizeof(wanted), " %s", flag);
	while (maps && !found && fgets(line, sizeof(line), maps)) {
		unsigned long from, to;

		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			inside = (uintptr_t)p >= from && (uintptr_t)p < to;
		else if (inside && strncmp(line, "VmFlags:", 8) == 0)
			found = strstr(line, wanted) != NULL;
	}
	if (maps)
		fclose(maps);
	return found;
}

static int kernel_gives_huge_pages(void)
{
	char mode[128] = "";
	FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");

	if (file) {
		(void)!fgets(mode, sizeof(mode), file);
		fclose(file);
	}
	return strstr(mode, "[madvise]") || strstr(mode, "[always]");
}

int main(int argc, char **argv)
{
	static const char *const modes[] = {"never", "auto", "always"};

	if (!claim_ours())
		return claim_skip("the switch is ours");
	if (!kernel_gives_huge_pages())
		return claim_skip("the kernel gives no huge pages");
	if (argc < 2) {
		for (int i = 0; i < 3; i++) {
			setenv("TIERMALLOC_HUGE", modes[i], 1);
			claim(claim_again(claim_preload(), modes[i], NULL) == 0, "HUGE=%s",
			      modes[i]);
		}
		return claim_end();
	}
	char *small = malloc(100);
	char *large = malloc((size_t)64 << 20);
	bool never = strcmp(argv[1], "never") == 0;

	memset(small, 1, 100);
	memset(large, 1, (size_t)64 << 20);
	claim(has_flag(large + ((size_t)32 << 20), "hg") == !never, "%s: large block", argv[1]);
	if (strcmp(argv[1], "auto") != 0)
		claim(has_flag(small, "hg") == !never, "%s: small block", argv[1]);
	free(large);
	free(small);
	return claim_end();
}
