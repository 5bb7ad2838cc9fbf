/* SPDX-License-Identifier: MIT */
/* See stop.h. */
#include "tools/runner/stop.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define SAME_SIGNAL_NS 500000000

/* Lock-free, so that the handler may set them; worker threads may take the signal. */
static _Atomic int signal_seen;
static _Atomic int64_t first_ns;

static void note(int number)
{
	struct timespec now;
	int64_t ns, none = 0;

	clock_gettime(CLOCK_MONOTONIC, &now);
	ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	if (atomic_compare_exchange_strong_explicit(&first_ns, &none, ns, memory_order_relaxed,
						    memory_order_relaxed)) {
		atomic_store_explicit(&signal_seen, number, memory_order_relaxed);
	} else if (ns - none >= SAME_SIGNAL_NS) {
		signal(number, SIG_DFL);
		raise(number);
	}
}

void yi_stop_watch(void)
{
	static const int numbers[] = {SIGINT, SIGTERM};
	/* Interrupted writes are restarted: the signal does not truncate an answer. */
	struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};
	struct sigaction before;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
}

bool yi_stop_wanted(void)
{
	return atomic_load_explicit(&signal_seen, memory_order_relaxed) != 0;
}

int yi_stop_status(void)
{
	const int number = atomic_load_explicit(&signal_seen, memory_order_relaxed);

	if (number == 0)
		return 0;
	fprintf(stderr, "yi-coder-run: stopped by signal %d, what was done until then is kept\n",
		number);
	return 128 + number;
}
