/* SPDX-License-Identifier: MIT */
/* cross: yes */
/*
 * H66: a timer interrupts three threads 20,000 times a second each; the handler allocates, frees,
 * reallocates, and frees blocks of the interrupted code, which does the same all the time. Every
 * block keeps its content and the work gets done.
 * Failure: an assertion (glibc), a hang (jemalloc, tcmalloc) or a crash (mimalloc).
 */
#include "probe.h"
#include <pthread.h>
#include <sys/syscall.h>

enum { THREADS = 3, KEPT = 64, SHELF = 32 };

struct shelf {
	_Atomic(unsigned char *) slot[SHELF]; /* a block here belongs to whoever takes it out */
	uint64_t seed;
	unsigned long handled;
};
static __thread struct shelf *mine;
static _Atomic bool stop;

/* A block tells its own size and content. */
static unsigned char *make(size_t bytes, int zero)
{
	unsigned char *p = zero ? calloc(1, bytes) : malloc(bytes);
	uint32_t size = (uint32_t)bytes;
	size_t end = bytes < 200 ? bytes : 200;

	probe_require(p != NULL, "malloc(%zu) is NULL", bytes);
	probe_require((uintptr_t)p % 16 == 0, "%p is not aligned", (void *)p);
	if (zero)
		probe_require(probe_zero(p, end), "calloc is not zero");
	memcpy(p, &size, 4);
	p[bytes - 1] = (unsigned char)bytes;
	probe_fill(p + 4, end - 5, bytes);
	return p;
}

static void destroy(unsigned char *p)
{
	uint32_t size;

	if (p == NULL)
		return;
	memcpy(&size, p, 4);
	size_t end = size < 200 ? size : 200;
	probe_require(p[size - 1] == (unsigned char)size, "the end of %u bytes changed", size);
	probe_require(probe_filled(p + 4, end - 5, size), "%u bytes changed", size);
	free(p);
}

static size_t any_size(uint64_t *seed)
{
	uint32_t r = probe_random(seed);

	return 16 + (r % 200 == 0 ? r % 300000 : r % 10 == 0 ? r % 20000 : r % 600);
}

static void use_shelf(struct shelf *s, uint64_t *seed)
{
	unsigned char *p = make(any_size(seed), probe_random(seed) % 4 == 0);

	if (probe_random(seed) % 4 == 0) {
		uint32_t size;
		memcpy(&size, p, 4);
		free(realloc(p, size * 2));
		p = make(any_size(seed), 0);
	}
	destroy(atomic_exchange(&s->slot[probe_random(seed) % SHELF], p));
}

static void on_timer(int sig)
{
	int saved = errno;

	(void)sig;
	if (mine != NULL) {
		use_shelf(mine, &mine->seed);
		mine->handled++;
	}
	errno = saved;
}

static void *work(void *arg)
{
	struct shelf *s = arg;
	unsigned char *kept[KEPT] = {NULL};
	uint64_t seed = s->seed * 31 + 7;
	unsigned long done = 0;
	struct itimerspec period = {{0, 50000}, {0, 50000}};
	struct sigevent event;
	timer_t timer;

	mine = s;
	memset(&event, 0, sizeof(event));
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_signo = SIGUSR1;
#ifdef sigev_notify_thread_id
	event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
#else
	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
#endif
	probe_require(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, "no timer");
	timer_settime(timer, 0, &period, NULL);
	for (; !stop; done++) {
		size_t i = probe_random(&seed) % KEPT;
		destroy(kept[i]);
		kept[i] = make(any_size(&seed), probe_random(&seed) % 8 == 0);
		if (done % 4 == 0)
			use_shelf(s, &seed);
	}
	timer_delete(timer);
	for (size_t i = 0; i < KEPT; i++)
		destroy(kept[i]);
	probe_require(done > 1000 && s->handled > 1000, "only %lu rounds and %lu signals", done,
		      s->handled);
	return NULL;
}

int main(void)
{
	static struct shelf shelf[THREADS];
	struct sigaction action;
	pthread_t t[THREADS];

	probe_limit();
	memset(&action, 0, sizeof(action));
	action.sa_handler = on_timer;
	action.sa_flags = SA_RESTART;
	sigaction(SIGUSR1, &action, NULL);
	for (size_t i = 0; i < THREADS; i++) {
		shelf[i].seed = i + 1;
		pthread_create(&t[i], NULL, work, &shelf[i]);
	}
	probe_sleep_ms(getenv("TM_LONG") ? 600000 : 3000);
	stop = true;
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	return 0;
}
