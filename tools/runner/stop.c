/* SPDX-License-Identifier: MIT */
/* See stop.h. */
#include "tools/runner/stop.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

/* Lock-free, so that the handler may set it; worker threads may take the signal. */
static _Atomic int signal_seen;

static void note(int number)
{
	atomic_store_explicit(&signal_seen, number, memory_order_relaxed);
}

void yi_stop_watch(void)
{
	static const int numbers[] = {SIGINT, SIGTERM};
	/* Writes go on where they were: an answer isn't torn by the signal. */
	struct sigaction action = {.sa_handler = note,
				   .sa_flags = (int)(SA_RESETHAND | SA_RESTART)};
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
