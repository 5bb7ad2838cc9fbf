/* SPDX-License-Identifier: MIT */
/*
 * H45, H46, H66: a signal handler makes a child at any instruction of the library, and returns in the
 * child: what it interrupted goes on there, in the middle of an allocation and inside the library's
 * locks. The child then takes and frees memory of all kinds. By fork, _Fork and raw clone, with the ledger and
 * without, and in a thread's birth and end. Failure: a crash, a hang, dirty or doubly used memory, a
 * block that the child may not free.
 */
#include "stepper.h"
#include <dlfcn.h>

static const char *what;
static unsigned share, children;
static bool is_child;
static pid_t (*raw_fork)(void); /* NULL before glibc 2.34 */

static void use_all_sizes(void)
{
	static const size_t sizes[] = {16,    48,    100,   500,   1500,   5000,
				       20000, 33000, 60000, 70000, 300000, 1200000};
	enum { SIZES = sizeof(sizes) / sizeof(*sizes), BLOCKS = 4 * SIZES };
	unsigned char *b[BLOCKS];

	for (unsigned i = 0; i < BLOCKS; i++) {
		size_t bytes = sizes[i % SIZES];

		b[i] = i % 3 == 1 ? calloc(1, bytes) : malloc(bytes);
		probe_require(b[i] != NULL, "%s: no memory for %zu bytes", what, bytes);
		probe_require(i % 3 != 1 || probe_zero(b[i], bytes), "%s: calloc is dirty", what);
		probe_fill(b[i], bytes < 8192 ? bytes : 8192, i);
	}
	for (unsigned i = 0; i < BLOCKS; i++) {
		size_t bytes = sizes[i % SIZES] < 8192 ? sizes[i % SIZES] : 8192;

		probe_require(probe_filled(b[i], bytes, i), "%s: %zu bytes were overwritten", what,
			      sizes[i % SIZES]);
		if (i % 4 == 0)
			b[i] = realloc(b[i], 2 * sizes[i % SIZES]);
		probe_require(b[i] != NULL && probe_filled(b[i], bytes, i),
			      "%s: realloc lost content", what);
		free(b[i]);
	}
}

static void use_many(size_t bytes, size_t total)
{
	void **first = NULL;

	for (size_t sum = 0; sum < total; sum += bytes) {
		void **p = malloc(bytes);

		probe_require(p != NULL, "%s: no memory for %zu bytes", what, bytes);
		*p = first;
		first = p;
	}
	while (first != NULL) {
		void **next = *first;

		free(first);
		first = next;
	}
}

static pid_t make_child(void)
{
	static unsigned turn;

	switch (turn++ % 3) {
	case 0: return fork();
	case 1: return raw_fork != NULL ? raw_fork() : fork();
	default: return (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
	}
}

static void live_on(void)
{
	use_all_sizes();
	use_many(64, 70000);
	for (unsigned i = 0; i < 64; i += 2)
		free(stepper.others[i]);
	use_many(2000, 100000);
	malloc_trim(0);
	use_all_sizes();
	use_many(9000, 300000);
}

/* Where signals are blocked no handler comes, but for the stepper's. */
static bool is_blocked(void)
{
	sigset_t mask;

	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	return sigismember(&mask, SIGUSR1) == 1;
}

static void stop(uintptr_t at)
{
	char place[64];

	if (is_child || is_blocked() || !stepper_chosen(what, at, share))
		return;
	pid_t pid = make_child();
	probe_require(pid >= 0, "no child");
	if (pid == 0) {
		stepper_stop = NULL;
		is_child = true;
		probe_limit();
		free(malloc(100));
		return;
	}
	snprintf(place, sizeof(place), "%s +%lx", what, at);
	probe_child_ok(pid, place);
	children++;
}

static void *live_and_end(void *arg)
{
	stepper_begin(stop);
	free(malloc(100));
	if (is_child)
		live_on();
	return arg; /* and on to its end; the child ends with it */
}

static void *work(void *arg)
{
	for (size_t i = 0; i < sizeof(stepper_works) / sizeof(*stepper_works); i++) {
		what = stepper_works[i].name;
		stepper_begin(stop);
		stepper_works[i].run();
		stepper_end();
		if (is_child) {
			live_on();
			_exit(0);
		}
	}
	return arg;
}

static void run(void)
{
	pthread_t t;

	share = getenv("TM_LONG") != NULL ? 1 : 2000;
	stepper_init();
	for (unsigned i = 0; i < 64; i++)
		stepper.others[i] = malloc(100 + i * 31);
	pthread_create(&t, NULL, work, NULL);
	pthread_join(t, NULL);
	what = "a thread's life";
	share = (share + 49) / 50;
	pthread_create(&t, NULL, live_and_end, NULL);
	pthread_join(t, NULL);
	probe_require(children > 20, "%u children only", children);
}

int main(int argc, char **argv)
{
	/* A helper's stack is not made for the trap flag that it would inherit. */
	setenv("TIERMALLOC_THREAD", "never", 1);
	probe_limit();
	if (argc > 1) {
		void *f = dlsym(RTLD_DEFAULT, "_Fork");

		memcpy(&raw_fork, &f, sizeof(f));
		run();
		return 0;
	}
	setenv("TIERMALLOC_DIR", "ledgers", 1);
	probe_child_ok(probe_again(argv[0], "on"), "with a ledger");
	setenv("TIERMALLOC_LEDGER", "off", 1);
	probe_child_ok(probe_again(argv[0], "off"), "without a ledger");
	return 0;
}
