/* SPDX-License-Identifier: MIT */
/*
 * H22: a library opened by dlmopen in a namespace of its own has its own libc and its own
 * malloc. Work inside goes on, and a block of that libc that crosses into ours is freed without a
 * crash (tcmalloc aborts, jemalloc and mimalloc die). Ours stays in order afterwards.
 */
#include "claim.h"

int main(void)
{
	void *(*make)(size_t);
	int (*work)(void);
	void *h = dlmopen(LM_ID_NEWLM, claim_beside("libnamespace_guest.so"), RTLD_NOW);

	claim(h, "dlmopen: %s", dlerror());
	if (!h)
		return 1;
	void *found[2] = {dlsym(h, "guest_make"), dlsym(h, "guest_work")};
	memcpy(&make, &found[0], sizeof(found[0]));
	memcpy(&work, &found[1], sizeof(found[1]));
	claim(work() == 0, "work inside");
	free(make(100));
	free(make(500000));
	claim(work() == 0, "work inside after the crossing");
	for (int i = 0; i < 100000; i++)
		free(malloc((size_t)i % 3000));
	return claim_end();
}
