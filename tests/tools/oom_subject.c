/* SPDX-License-Identifier: MIT */
/*
 * The program of oom_kill_keeps_the_account.py: oom_subject COUNTS. Once it reads a line, four threads
 * allocate and write, free a third of it, and keep their own count in a shared file, until the kernel
 * ends them.
 */
/* run: none */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { THREADS = 4 };

struct count {
	_Atomic long objects, bytes;
	char pad[112];
};
static struct count *count;

static size_t size_of(unsigned long r)
{
	return r % 50 == 0 ? 70000 + r % 100000 : r % 9 == 0 ? 1025 + r % 60000 : 16 + r % 1000;
}

__attribute__((noinline)) static void *work(void *arg)
{
	struct count *mine = &count[(long)arg];

	for (unsigned long n = 1;; n++) {
		unsigned long r = (n * 2654435761u + (unsigned long)arg * 40503u) >> 5;
		size_t size = size_of(r);
		char *p = malloc(size);

		if (p == NULL)
			continue;
		mine->objects++;
		mine->bytes += (long)size;
		memset(p, 1, size);
		if (n % 3 != 0)
			continue;
		mine->objects--;
		mine->bytes -= (long)size;
		free(p);
		/* so that samples see it grow */
		if (n % 9 == 0)
			usleep(1000);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int fd = argc > 1 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
	pthread_t thread;

	if (fd < 0 || ftruncate(fd, 4096) != 0)
		return 2;
	count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (getchar() == EOF)
		return 2;
	for (long i = 0; i < THREADS; i++)
		pthread_create(&thread, NULL, work, (void *)i);
	pause();
}
