/* SPDX-License-Identifier: MIT */
/* build: -Wl,-z,now */
/* env: TIERMALLOC_REPORT=full TIERMALLOC_DIR=ledgers */
/* stderr: tiermalloc .* report of process .* */
/* stderr: VERDICT .* */
/*
 * A program that calls exit on a stack of 8 KiB, as a coroutine or a main thread under a small
 * `ulimit -s` has, still gets its report, and malloc_info writes as much there.
 * Failure: a fault on the guard page, or no report.
 */
#include "claim.h"

#include <malloc.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { COROUTINE = 8192 };

static ucontext_t back;

static void ends(void)
{
	FILE *stream = fopen("info", "w");

	malloc_info(0, stream);
	fclose(stream);
	exit(claim_end());
}

int main(void)
{
	static ucontext_t inside;
	char *map = mmap(NULL, COROUTINE + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mprotect(map + 4096, COROUTINE, PROT_READ | PROT_WRITE);
	getcontext(&inside);
	inside.uc_stack.ss_sp = map + 4096;
	inside.uc_stack.ss_size = COROUTINE;
	inside.uc_link = &back;
	makecontext(&inside, ends, 0);
	swapcontext(&back, &inside);
	return 1;
}
