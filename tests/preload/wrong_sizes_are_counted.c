/* SPDX-License-Identifier: MIT */
/* env: TIERMALLOC_REPORT=exit */
/* stderr: .*size mismatches +6 .* */
/*
 * H38: a sized free with another size than was asked for frees all the same, and is counted; right
 * sizes are not. The report tells the number.
 */
#include "claim.h"

void free_sized(void *p, size_t size);

int main(void)
{
	void (*sized)(void *, size_t) = NULL;
	void *found = dlsym(RTLD_DEFAULT, "free_sized");

	if (!claim_ours() || found == NULL)
		return claim_skip("the report is ours");
	memcpy(&sized, &found, sizeof(sized));
	static const size_t size[] = {1, 16, 100, 1000, 1024, 1025, 5000, 65536, 65537, 3 << 20};
	for (size_t round = 0; round < 100; round++)
		for (size_t i = 0; i < sizeof(size) / sizeof(size[0]); i++)
			sized(malloc(size[i]), size[i]);
	sized(realloc(malloc(100), 104), 104);
	sized(malloc(100), 50);
	sized(malloc(100), 200);
	sized(malloc(5000), 4999);
	sized(malloc(3 << 20), 100);
	sized(malloc(3 << 20), (3 << 20) + 1);
	sized(malloc(40), 70000);
	return claim_end();
}
