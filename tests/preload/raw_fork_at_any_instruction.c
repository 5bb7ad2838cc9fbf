/* SPDX-License-Identifier: MIT */
/*
 * H46: a child is made by raw clone while another thread stands at any instruction of the library's
 * slow paths, also inside its locks. That thread does not exist in the child, which takes and frees
 * memory of all kinds. With the ledger, which parent and child share at first, and without.
 * Failure: no memory, a hang, dirty or doubly used memory in the child.
 */
#include "stepper.h"
#include <semaphore.h>

static sem_t go, done;
static uintptr_t where;
static const char *what;
static void *theirs[64];
static _Atomic bool end;
static unsigned share, children;

static unsigned char *take(size_t bytes, bool zero)
{
	unsigned char *p = zero ? calloc(1, bytes) : malloc(bytes);

	probe_require(p != NULL, "%s +%lx: no memory for %zu bytes", what, where, bytes);
	probe_require(!zero || probe_zero(p, bytes), "%s +%lx: calloc is dirty", what, where);
	return p;
}

static void use_all_sizes(void)
{
	static const size_t sizes[] = {16,    48,    100,   500,   1500,   5000,
				       20000, 33000, 60000, 70000, 300000, 1200000};
	enum { SIZES = sizeof(sizes) / sizeof(*sizes), BLOCKS = 3 * SIZES };
	unsigned char *b[BLOCKS];

	for (unsigned i = 0; i < BLOCKS; i++) {
		size_t bytes = sizes[i % SIZES];

		b[i] = take(bytes, i % 3 == 1);
		probe_fill(b[i], bytes < 8192 ? bytes : 8192, i);
	}
	for (unsigned i = 0; i < BLOCKS; i++) {
		size_t bytes = sizes[i % SIZES] < 8192 ? sizes[i % SIZES] : 8192;

		probe_require(probe_filled(b[i], bytes, i), "%s +%lx: %zu bytes were overwritten",
			      what, where, sizes[i % SIZES]);
		if (i % 4 == 0) {
			b[i] = realloc(b[i], 2 * sizes[i % SIZES]);
			probe_require(b[i] != NULL && probe_filled(b[i], bytes, i),
				      "%s +%lx: realloc lost content", what, where);
		}
		free(b[i]);
	}
}

static void use_many(size_t bytes, size_t total)
{
	void **first = NULL;

	for (size_t sum = 0; sum < total; sum += bytes) {
		void **p = (void **)(void *)take(bytes, sum % 3 == 0);

		*p = first;
		first = p;
	}
	while (first != NULL) {
		void **next = *first;

		free(first);
		first = next;
	}
}

static void live_as_child(void)
{
	probe_limit();
	use_all_sizes();
	use_many(64, 70000);
	for (unsigned i = 0; i < 64; i += 2) {
		free(theirs[i]);
		free(stepper.others[i]);
	}
	use_many(2000, 100000);
	malloc_trim(0);
	use_all_sizes();
	use_many(9000, 300000);
	_exit(0);
}

/* In the stepped thread: the main thread makes a child meanwhile. */
static void stop(uintptr_t at)
{
	if (!stepper_chosen(what, at, share))
		return;
	where = at;
	sem_post(&go);
	while (sem_wait(&done) != 0)
		;
}

static void *work(void *arg)
{
	for (unsigned i = 0; i < 64; i++)
		theirs[i] = malloc(i % 7 == 0 ? 70000 : 24 + i * 5);
	stepper_run_works(&what, stop);
	what = "a thread's life";
	stepper_run_life(stop);
	end = true;
	sem_post(&go);
	return arg;
}

static void run(void)
{
	pthread_t t;

	share = getenv("TM_LONG") != NULL ? 1 : 600;
	stepper_init();
	sem_init(&go, 0, 0);
	sem_init(&done, 0, 0);
	for (unsigned i = 0; i < 64; i++)
		stepper.others[i] = malloc(100 + i * 31);
	pthread_create(&t, NULL, work, NULL);
	for (;;) {
		while (sem_wait(&go) != 0)
			;
		if (end)
			break;
		pid_t pid = (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
		if (pid == 0)
			live_as_child();
		probe_child_ok(pid, what);
		children++;
		sem_post(&done);
	}
	pthread_join(t, NULL);
	probe_require(children > 20, "%u children only", children);
}

int main(int argc, char **argv)
{
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
