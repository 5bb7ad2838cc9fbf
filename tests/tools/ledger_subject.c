/* SPDX-License-Identifier: MIT */
/*
 * The program of kill_keeps_the_account.sh: threads that allocate, free and hand blocks to each
 * other to free, and keep their own count in a shared file: ledger_subject COUNTS idle|busy|forks
 */
/* run: none */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, SHELF = 20000 };

/* Single writer each, so that plain order is enough: counted after malloc, taken off before free. */
struct count {
	_Atomic long objects, bytes;
	char pad[112];
};
static struct count *count;
static _Atomic(unsigned char *) given[THREADS][64];
static _Atomic int ready;
static int busy;

static size_t size_of(unsigned long n)
{
	switch (n % 64) {
	case 0: return 70000 + n % 100000;
	case 1:
	case 2: return 1025 + n % 60000;
	default: return 16 + n % 1000;
	}
}

static void drop(long me, unsigned char *p)
{
	size_t size;

	memcpy(&size, p, sizeof(size));
	count[me].objects--;
	count[me].bytes -= (long)size;
	free(p);
}

static void *work(void *arg)
{
	long me = (long)arg;
	unsigned char **shelf = mmap(NULL, SHELF * sizeof(*shelf), PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (unsigned long n = 1; busy || n < 60000; n++) {
		unsigned long r = n * 2654435761u + (unsigned long)me * 40503u;
		unsigned char **place = &shelf[(r >> 9) % SHELF];
		size_t size = size_of(r >> 4);

		if (*place != NULL && n % 5 == 0)
			*place = atomic_exchange(&given[(me + 1) % THREADS][n % 64], *place);
		if (*place != NULL)
			drop(me, *place);
		*place = malloc(size);
		memcpy(*place, &size, sizeof(size));
		count[me].objects++;
		count[me].bytes += (long)size;
		unsigned char *other = atomic_exchange(&given[me][n % 64], NULL);
		if (other != NULL)
			drop(me, other);
	}
	ready++;
	pause();
	return NULL;
}

/* Children of all kinds allocate and free: nothing of that may show in the parent's ledger. */
static void fork_some(void)
{
	for (int i = 0; i < 60; i++) {
		pid_t pid = i % 2 ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

		if (pid == 0) {
			for (int k = 0; k < 500; k++) {
				volatile char *p = malloc((size_t)k * 7 + 1);
				p[0] = 1;
				if (k % 3)
					free((void *)p);
			}
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int fd = argc > 2 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;

	if (fd < 0 || ftruncate(fd, 4096) != 0)
		return 2;
	count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	busy = strcmp(argv[2], "idle") != 0;
	for (long i = 0; i < THREADS; i++)
		pthread_create(&thread, NULL, work, (void *)i);
	if (strcmp(argv[2], "forks") == 0)
		fork_some();
	else if (busy)
		usleep(300000);
	else
		while (ready < THREADS)
			usleep(1000);
	kill(getpid(), SIGKILL);
}
