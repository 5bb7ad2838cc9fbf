/* SPDX-License-Identifier: MIT */
/* build: -Wl,-z,now */
/*
 * H26: threads with PTHREAD_STACK_MIN, coroutines of 8 KiB and a handler on an alternate stack
 * allocate at every size, first thing in their life too. The stack is painted beforehand; right:
 * less than 4 KiB is ever used below the caller. Failure: a fault on the guard page.
 */
#include "claim.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { COROUTINE = 8192, PAINT = 0xa5, LEFT = 20000 };

static void every_size(void)
{
	for (size_t size = 1; size < (size_t)8 << 20; size += size / 2 + 1) {
		char *p = malloc(size), *q = calloc(1, size);
		if (!p || !q)
			abort();
		p[0] = p[size - 1] = 1;
		p = realloc(p, size * 3);
		free(q);
		q = memalign(256, size);
		free(p);
		free(q);
	}
	malloc_trim(0);
}

static void *thread_main(void *unused)
{
	every_size();
	return unused;
}

static ucontext_t back;
static char *stack;

static void (*work)(void) = every_size;

static void coroutine_main(void)
{
	work();
}

/* An 8 KiB stack between two guard pages; bytes that were written to are returned. */
static size_t coroutine(void)
{
	static ucontext_t inside;
	char *map = mmap(NULL, COROUTINE + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	stack = map + 4096;
	mprotect(stack, COROUTINE, PROT_READ | PROT_WRITE);
	memset(stack, PAINT, COROUTINE);
	getcontext(&inside);
	inside.uc_stack.ss_sp = stack;
	inside.uc_stack.ss_size = COROUTINE;
	inside.uc_link = &back;
	makecontext(&inside, coroutine_main, 0);
	swapcontext(&back, &inside);
	size_t untouched = 0;
	while (untouched < COROUTINE && (unsigned char)stack[untouched] == PAINT)
		untouched++;
	munmap(map, COROUTINE + 8192);
	return COROUTINE - untouched;
}

static void handler(int signal_number)
{
	(void)signal_number;
	every_size();
}

/* Leaves spans with free slots, and arenas, behind. */
static void *leaving_thread(void *ret_kept)
{
	char **kept = ret_kept;

	for (int i = 0; i < LEFT; i++) {
		char *p = malloc(i % 2 ? 48 : 2000);

		if (i % 64 < 2)
			kept[i / 64 * 2 + i % 2] = p;
		else
			free(p);
	}
	return NULL;
}

/* Takes over what threads left. */
static void many(void)
{
	static char *p[LEFT];

	for (int i = 0; i < LEFT; i++)
		p[i] = malloc(i % 2 ? 48 : 2000);
	for (int i = 0; i < LEFT; i++)
		free(p[i]);
}

static void *coroutine_thread(void *ret_used)
{
	*(size_t *)ret_used = coroutine(); /* a new heap begins on the small stack */
	return NULL;
}

int main(void)
{
	pthread_attr_t attr;
	pthread_t thread[8];
	size_t used = 0;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, (size_t)PTHREAD_STACK_MIN);
	for (int i = 0; i < 8; i++)
		claim(pthread_create(&thread[i], &attr, thread_main, NULL) == 0, "pthread_create");
	for (int i = 0; i < 8; i++)
		pthread_join(thread[i], NULL);
	pthread_create(&thread[0], NULL, coroutine_thread, &used);
	pthread_join(thread[0], NULL);
	claim(used < 4096, "%zu bytes of stack in a new thread", used);
	used = coroutine();
	claim(used < 4096, "%zu bytes of stack", used);

	static char *kept[4][LEFT / 32 + 2];

	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, leaving_thread, kept[i]);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	work = many;
	used = coroutine();
	claim(used < 4096, "%zu bytes of stack to take over what threads left", used);

	static char alternate[16384];
	sigaltstack(&(stack_t){.ss_sp = alternate, .ss_size = sizeof(alternate)}, NULL);
	sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handler, .sa_flags = SA_ONSTACK},
		  NULL);
	raise(SIGUSR1);
	return claim_end();
}
