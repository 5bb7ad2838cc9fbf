/* SPDX-License-Identifier: MIT */
/* cross: yes */
/* build: -Wno-use-after-free -Wno-alloc-size-larger-than */
/*
 * H35, log 14: sizes that cannot be had give NULL with errno ENOMEM, without a
 * message or abort, and leave the allocator in order; products are checked. Failure: errno 0
 * (tcmalloc, mimalloc), an abort, a long search, or memory lost by each attempt.
 */
#include "claim.h"

#include <malloc.h>

int main(void)
{
	static const size_t sizes[] = {(size_t)1 << 47,    (size_t)1 << 48, (size_t)1 << 62,
				       PTRDIFF_MAX - 4096, PTRDIFF_MAX,     (size_t)PTRDIFF_MAX + 1,
				       SIZE_MAX - 4096,    SIZE_MAX - 1,    SIZE_MAX};
	char *kept = strdup("kept"), *again;
	long before = claim_status_kib("VmSize:");

	for (int round = 0; round < 100; round++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			size_t size = sizes[i];
			void *out = kept;
			struct {
				const char *name;
				void *got;
				int error;
			} tried[9];
			int n = 0;
#define TRY(call)                                                                                  \
	(errno = 0, tried[n].name = #call, tried[n].got = (call), tried[n++].error = errno)
			TRY(malloc(size));
			TRY(calloc(1, size));
			TRY(calloc(size, 1));
			TRY(calloc(size, size));
			TRY(realloc(kept, size));
			TRY(reallocarray(kept, size / 2 + 1, 4));
			TRY(memalign(64, size));
			TRY(aligned_alloc(4096, size & ~(size_t)4095));
			TRY(valloc(size));
			for (int j = 0; j < n; j++)
				claim(!tried[j].got && tried[j].error == ENOMEM,
				      "%s with size %zu: %p, errno %d", tried[j].name, size,
				      tried[j].got, tried[j].error);
			claim(posix_memalign(&out, 64, size) == ENOMEM && out == kept,
			      "posix_memalign");
		}
	errno = 0;
	claim(!calloc((size_t)1 << 33, (size_t)1 << 33) && errno == ENOMEM, "2^33 * 2^33");
	errno = 0;
	again = reallocarray(kept, (size_t)1 << 60, 32);
	claim(!again && errno == ENOMEM && strcmp(kept, "kept") == 0,
	      "reallocarray keeps the block");
	claim(claim_status_kib("VmSize:") - before < 4096,
	      "each failure keeps address space: %ld KiB", claim_status_kib("VmSize:") - before);
	free(kept);
	for (int i = 0; i < 1000; i++)
		free(malloc((size_t)i * 1000));
	return claim_end();
}
