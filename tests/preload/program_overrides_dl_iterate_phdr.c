/* SPDX-License-Identifier: MIT */
/* build: -rdynamic */
/*
 * H02, log 6: the program defines dl_iterate_phdr itself and looks the real one up at its first
 * use, which allocates. Whoever walks the modules from inside an allocation ends here. Failure:
 * a hang or endless recursion.
 */
#include "claim.h"

#include <execinfo.h>
#include <link.h>

static int calls;

int dl_iterate_phdr(int (*each)(struct dl_phdr_info *, size_t, void *), void *data)
{
	static int (*real)(int (*)(struct dl_phdr_info *, size_t, void *), void *);

	calls++;
	if (!real) {
		void *volatile p = malloc(300000);
		void *found = dlsym(RTLD_NEXT, "dl_iterate_phdr");
		dlsym(RTLD_NEXT, "no_such_name");
		free(p);
		memcpy(&real, &found, sizeof(found));
	}
	return real(each, data);
}

int main(void)
{
	void *frames[32];

	for (int i = 0; i < 300000; i++)
		free(malloc((size_t)(i % 5000)));
	for (int i = 0; i < 200; i++) {
		char *p = calloc(1, (size_t)i << 14);
		p = realloc(p, ((size_t)i << 14) + 5);
		free(p);
	}
	claim(backtrace(frames, 32) > 1, "no frames");
	free(backtrace_symbols(frames, 3));
	claim(calls < 100000, "%d walks", calls);
	return claim_end();
}
