/* SPDX-License-Identifier: MIT */
/*
 * The program of unreachable_objects_are_found.py: prints KIND ADDRESS of objects that can be reached
 * in many ways, and of some that cannot, then waits: scan_subject idle|busy|kept (without the latter)
 */
/* run: none */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct node {
	struct node *next, *child;
	char text[80];
};

static struct node *volatile global;
static __thread struct node *volatile local;
static char *volatile inside;
static void **volatile elsewhere;
static volatile int go_on = 1;

static struct node *make(const char *kind, size_t size)
{
	struct node *n = calloc(1, size);
	char line[64];
	ssize_t written = write(1, line, (size_t)snprintf(line, 64, "%s %p\n", kind, (void *)n));

	memset(line, 0, sizeof(line));
	return written < 0 ? NULL : n;
}

/* Pairs that only know each other: the first is pointed to by nobody. */
static __attribute__((noinline)) void lose(void)
{
	for (int i = 0; i < 100; i++) {
		struct node *n = make("lost", sizeof(*n));
		n->child = make("lost-child", 48);
		memset(n->child, 0, 48);
	}
	for (int i = 0; i < 3; i++) {
		struct node *n = make("lost", i == 0 ? 5000 : 300000);
		n->next = n;
	}
}

static __attribute__((noinline)) void wipe_stack(void)
{
	volatile char junk[20000];

	for (size_t i = 0; i < sizeof(junk); i++)
		junk[i] = 0;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *thread(void *arg)
{
	struct node *volatile mine = make("stack", sizeof(struct node));

	local = make("tls", sizeof(struct node));
	pthread_barrier_wait(arg);
	while (go_on)
		usleep(5000);
	return mine;
}

#if defined(__x86_64__)
/* Held in a register that calls keep, and nowhere else. */
static __attribute__((noinline)) void hold_in_register(int busy)
{
	register struct node *n __asm__("rbx");
	double end = now() + 60;

	n = make("register", sizeof(*n));
	__asm__ volatile("" : "+r"(n));
	if (write(1, "ready 0\n", 8) < 0)
		return;
	wipe_stack();
	__asm__ volatile("" : "+r"(n));
	while (now() < end) {
		void *volatile p = malloc(3000);

		free(p);
		if (!busy)
			pause();
		__asm__ volatile("" : "+r"(n));
	}
}
#else
static void hold_in_register(int busy)
{
	(void)busy;
	if (write(1, "ready 0\n", 8) < 0)
		return;
	pause();
}
#endif

int main(int argc, char **argv)
{
	pthread_barrier_t barrier;
	pthread_t t;
	double end = now() + 1.5;
	int busy = argc > 1 && strcmp(argv[1], "busy") == 0;

	if (argc < 2 || strcmp(argv[1], "kept") != 0)
		lose();
	wipe_stack();
	global = make("global", sizeof(*global));
	global->child = make("chain", 48);
	global->next = make("chain", 200000);
	*(void **)((char *)global->next + 100000) = make("chain", 9000);
	inside = (char *)make("inside", 5000) + 1234;
	elsewhere = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	elsewhere[3] = make("mapped", 100);
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&t, NULL, thread, &barrier);
	pthread_barrier_wait(&barrier);
	while (now() < end) {
		for (size_t i = 0; i < 300; i++) {
			void *volatile p = malloc(16 * i + 1);
			free(p);
		}
		usleep(1000);
	}
	hold_in_register(busy);
	return 0;
}
