/* SPDX-License-Identifier: MIT */
/*
 * The program of scans_take_care.py: objects whose only pointer lies where a scan does not simply look, or
 * looks in vain; prints KIND ADDRESS of each, then lives on.
 *   dontfork   in a mapping that children do not get        dontfork-block  in a block of which that is true
 *   tagged     with a tag in its upper 16 bits              nan             boxed in a double
 *   behind     in a block of which a page is protected      lost            nowhere
 *   stale      nowhere but in a dead word of a stack        xor             xored; freed after a while
 */
/* run: none */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MASK UINT64_C(0x5a5a123456789abc)
enum { HIDDEN = 64 };

static volatile uint64_t hidden[HIDDEN];
static volatile uint64_t tagged, boxed;
static char *volatile protected_block, *volatile unforked_block;
static void **volatile unforked;
static void *volatile sink;

static __attribute__((noinline)) void *make(const char *kind, size_t size)
{
	char line[64];
	void *p = calloc(1, size);
	ssize_t n = write(1, line, (size_t)snprintf(line, 64, "%s %p\n", kind, p));

	memset(line, 0, sizeof(line));
	return n < 0 ? NULL : p;
}

static __attribute__((noinline)) void *secret(void)
{
	return sink = calloc(1, 80);
}

static __attribute__((noinline)) void wipe(void)
{
	volatile char junk[30000];

	for (size_t i = 0; i < sizeof(junk); i++)
		junk[i] = 0;
	sink = NULL;
}

static __attribute__((noinline)) void set_up(void)
{
	char *p;

	for (int i = 0; i < 20; i++)
		make("lost", 112);
	unforked = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unforked[500] = make("dontfork", 72);
	madvise((void *)unforked, 65536, MADV_DONTFORK);
	unforked_block = p = aligned_alloc(4096, 1 << 20);
	*(void **)(p + 300000) = make("dontfork-block", 72);
	madvise(p + 4096 * 64, 4096 * 64, MADV_DONTFORK);
	tagged = (uint64_t)make("tagged", 72) | UINT64_C(0xab) << 56;
	boxed = (uint64_t)make("nan", 72) | UINT64_C(0xfffc) << 48;
	protected_block = p = aligned_alloc(4096, 1 << 20);
	*(void **)(p + 500000) = make("behind", 72);
	mprotect(p + 4096 * 10, 4096 * 4, PROT_NONE);
}

/* A leaf that wrote the pointer far down and returned: the word stays. */
static __attribute__((noinline)) void leave_stale(void)
{
	void *volatile deep[2000];

	deep[3] = make("stale", 72);
	(void)deep[3];
}

static void *other(void *arg)
{
	leave_stale();
	pthread_barrier_wait(arg);
	for (;;)
		pause();
	return NULL;
}

static void renew(void)
{
	for (int i = 0; i < HIDDEN; i++) {
		free((void *)(uintptr_t)(hidden[i] ^ MASK));
		hidden[i] = (uint64_t)secret() ^ MASK;
	}
	wipe();
}

int main(void)
{
	static pthread_barrier_t barrier;
	pthread_t thread;

	for (int i = 0; i < HIDDEN; i++)
		hidden[i] = MASK;
	set_up();
	wipe();
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, other, &barrier);
	pthread_barrier_wait(&barrier);
	renew();
	/* the first window must be over before anything is judged */
	for (int i = 0; i < 100; i++) {
		free(malloc((size_t)i * 40 + 1));
		usleep(10000);
	}
	if (write(1, "ready 0\n", 8) < 0)
		return 1;
	for (unsigned n = 0;; n++) {
		for (int i = 0; i < 200; i++) {
			free(malloc((size_t)i * 40 + 1));
			usleep(5000);
		}
		renew();
	}
}
