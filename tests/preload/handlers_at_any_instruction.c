/* SPDX-License-Identifier: MIT */
/*
 * H66: a signal handler that allocates, resizes and frees comes at any instruction of the library's
 * slow paths, also inside its locks, in the birth and in the end of a thread.
 * Failure: a deadlock, no memory, dirty or doubly used memory, a changed errno.
 */
#include "stepper.h"

enum { SHELF = 64 };
static const char *what;
static unsigned share, stops;
static struct {
	unsigned char *at;
	size_t bytes;
} shelf[SHELF];

static void stop(uintptr_t at)
{
	static uint64_t seed = 7;
	int saved = errno;

	if (!stepper_chosen(what, at, share))
		return;
	stops++;
	errno = 1234;
	uint32_t r = probe_random(&seed);
	size_t bytes = 8 + (r % 50 == 0 ? probe_random(&seed) % 200000 : r % 800);
	unsigned i = probe_random(&seed) % SHELF;
	unsigned char *p = r % 3 != 0 ? malloc(bytes) : calloc(1, bytes);

	probe_require(p != NULL, "%s +%lx: no memory for %zu bytes", what, at, bytes);
	probe_require(r % 3 != 0 || probe_zero(p, bytes), "%s +%lx: calloc is dirty", what, at);
	probe_fill(p, bytes, (uintptr_t)p);
	if (shelf[i].at != NULL) {
		probe_require(probe_filled(shelf[i].at, shelf[i].bytes, (uintptr_t)shelf[i].at),
			      "%s +%lx: %zu bytes were overwritten", what, at, shelf[i].bytes);
		if (r % 5 == 0)
			shelf[i].at = realloc(shelf[i].at, 2 * bytes);
		probe_require(shelf[i].at != NULL, "%s +%lx: no realloc", what, at);
		free(shelf[i].at);
	}
	shelf[i].at = p;
	shelf[i].bytes = bytes;
	probe_require(errno == 1234, "%s +%lx: errno is %d", what, at, errno);
	errno = saved;
}

static void *work(void *arg)
{
	stepper_run_works(&what, stop);
	for (int i = 0; i < 10; i++) {
		what = i % 2 ? "a thread's life" : "another thread's life";
		stepper_run_life(stop);
	}
	return arg;
}

static void run(void)
{
	pthread_t t;

	share = getenv("TM_LONG") != NULL ? 1 : 12;
	stepper_init();
	for (unsigned i = 0; i < 64; i++)
		stepper.others[i] = malloc(100 + i * 31);
	pthread_create(&t, NULL, work, NULL);
	pthread_join(t, NULL);
	probe_require(stops > 200, "%u stops only", stops);
}

int main(int argc, char **argv)
{
	/* A helper's stack is not made for the trap flag that it would inherit. */
	setenv("TIERMALLOC_THREAD", "never", 1);
	probe_limit();
	if (argc > 1) {
		run();
		return 0;
	}
	probe_child_ok(probe_again(argv[0], "on"), "with a ledger");
	setenv("TIERMALLOC_LEDGER", "off", 1);
	probe_child_ok(probe_again(argv[0], "off"), "without a ledger");
	return 0;
}
