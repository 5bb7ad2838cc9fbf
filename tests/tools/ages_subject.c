/* SPDX-License-Identifier: MIT */
/*
 * The program of ages_are_told_by_windows.py: `steady` objects live for ever from the start, `queue`
 * holds the last 500, `churn` frees at once, `leak` keeps 2 of each step, and a block now and then.
 * ages_subject kill|exit: "N" on standard input asks for N steps, "0" for churn alone; each is
 * answered. At the end of input it says what it did, and ends.
 */
/* run: none */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *volatile sink;

__attribute__((noinline)) static void *steady(void)
{
	return sink = malloc(48);
}

__attribute__((noinline)) static void *queue(void)
{
	return sink = malloc(200);
}

__attribute__((noinline)) static void *churn(void)
{
	return sink = malloc(64);
}

__attribute__((noinline)) static void *leak(void)
{
	return sink = malloc(100);
}

__attribute__((noinline)) static void *block(void)
{
	return sink = malloc(100000);
}

static void *last[500];
static long leaked, blocks, steps;

static void step(void)
{
	for (int i = 0; i < 5; i++) {
		size_t at = (size_t)(steps * 5 + i) % 500;
		free(last[at]);
		last[at] = queue();
	}
	sink = leak();
	sink = leak();
	leaked += 2;
	if (steps % 10 == 0) {
		sink = block();
		blocks++;
		sink = malloc(80016);
		free(sink);
	}
	steps++;
}

int main(int argc, char **argv)
{
	static void *kept[1000];
	char line[32];

	for (int i = 0; i < 1000; i++)
		kept[i] = steady();
	while (fgets(line, sizeof(line), stdin)) {
		for (long n = atol(line); n > 0; n--)
			step();
		for (int i = 0; i < 400; i++)
			free(churn());
		/* Past the thread's own lists, where windows end. */
		for (int i = 0; i < 20; i++) {
			sink = malloc(70000);
			free(sink);
		}
		puts("done");
		fflush(stdout);
	}
	printf("leak %p %ld\nqueue %p %d\nsteady %p 1000\nchurn %p 0\nblock %p %ld\n", (void *)leak,
	       leaked, (void *)queue, steps * 5 < 500 ? (int)steps * 5 : 500, (void *)steady,
	       (void *)churn, (void *)block, blocks);
	fflush(stdout);
	if (kept[999] == NULL || argc < 2)
		return 1;
	if (strcmp(argv[1], "kill") == 0)
		raise(SIGKILL);
	return 0;
}
