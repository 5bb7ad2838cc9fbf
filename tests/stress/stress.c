/* SPDX-License-Identifier: MIT */
/*
 * Everything at once: threads that come and go, blocks of 1 B to 1 GiB by every entry of the
 * family, frees by other threads, forks of all kinds, dlopen, signal handlers that allocate, trims
 * and idle times. Every block carries a pattern made from its address and size, checked before
 * each free and after each realloc; calloc is checked for zero.
 * Failure: changed content, two owners of one block, dirty calloc, a crash or a hang.
 * usage: stress [SECONDS [SEED]]; 30 s here, 600 s with TM_LONG.
 */
#include "tests/preload/probe.h"
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>

#pragma weak _Fork

enum { THREADS = 6, SHELF = 4096, HANDLER_SHELF = 64 };
#define LIVE_MAX (1500 * MIB)   /* addresses */
#define TOUCHED_MAX (400 * MIB) /* what the patterns make resident */

struct block {
	unsigned char *at;
	size_t bytes;
};

/* A block on the shelf belongs to whoever takes it; the lock is one byte, never held for long. */
struct place {
	_Atomic bool taken;
	struct block block;
};
static struct place shelf[SHELF];
static _Atomic(unsigned char *) handler_shelf[HANDLER_SHELF];
static _Atomic size_t live, touched;
static _Atomic unsigned long done, forks, signals_handled;
static _Atomic bool stop, idle;
static __thread uint64_t handler_seed;
static char stress_seed[32] = "1";

/* Small blocks are filled whole, larger ones at both ends and in 256 places. */
static size_t stride(size_t bytes)
{
	return bytes <= 16384 ? 64 : bytes / 256 / 64 * 64;
}

static uint64_t tag(const unsigned char *at, size_t bytes)
{
	return ((uintptr_t)at >> 4) * 0x9e3779b97f4a7c15ull ^ bytes * 0xbf58476d1ce4e5b9ull;
}

static size_t touched_by(size_t bytes)
{
	return bytes <= MIB ? bytes : 257 * 4096;
}

static void fill(unsigned char *at, size_t bytes)
{
	uint64_t t = tag(at, bytes);
	size_t step = stride(bytes);

	for (size_t i = 0; i < bytes; i += step)
		probe_fill(at + i, bytes - i < 64 ? bytes - i : 64, t + i);
	if (bytes > 64)
		probe_fill(at + bytes - 64, 64, t + 1);
}

/* Whether the first part of a block that was filled as (was, bytes) is intact at its place. */
static bool intact(const unsigned char *at, const unsigned char *was, size_t bytes, size_t part)
{
	uint64_t t = tag(was, bytes);
	size_t step = stride(bytes), end = bytes > 64 ? bytes - 64 : bytes;

	end = part < end ? part : end;
	for (size_t i = 0; i < end; i += step)
		if (!probe_filled(at + i, end - i < 64 ? end - i : 64, t + i))
			return false;
	return bytes <= 64 || part < bytes || probe_filled(at + bytes - 64, 64, t + 1);
}

static void require_intact(struct block b)
{
	probe_require(intact(b.at, b.at, b.bytes, b.bytes),
		      "%zu bytes at %p were overwritten (seed %s)", b.bytes, (void *)b.at,
		      stress_seed);
}

static void drop(struct block b)
{
	if (b.at == NULL)
		return;
	require_intact(b);
	live -= b.bytes;
	touched -= touched_by(b.bytes);
	free(b.at);
}

static size_t any_size(uint64_t *seed)
{
	uint32_t r = probe_random(seed);
	unsigned top = r % 1000;
	unsigned bits = top < 700 ? 11 : top < 930 ? 16 : top < 985 ? 20 : top < 998 ? 24 : 30;
	size_t bytes = ((size_t)probe_random(seed) << 3 | 1) & (((size_t)1 << bits) - 1);

	return bytes >> (r >> 10) % bits | 1;
}

static unsigned char *aligned(uint64_t *seed, size_t bytes)
{
	size_t align = (size_t)16 << probe_random(seed) % (probe_random(seed) % 16 ? 9 : 18);
	void *p = NULL;

	switch (probe_random(seed) % 3) {
	case 0:
		if (posix_memalign(&p, align, bytes) != 0)
			p = NULL;
		break;
	case 1: p = aligned_alloc(align, bytes); break;
	default: p = memalign(align, bytes);
	}
	probe_require((uintptr_t)p % align == 0, "%p is not aligned to %zu", p, align);
	return p;
}

static void require_zero(const unsigned char *p, size_t bytes)
{
	size_t step = stride(bytes);

	for (size_t i = 0; i < bytes; i += step)
		probe_require(probe_zero(p + i, bytes - i < 64 ? bytes - i : 64),
			      "calloc(%zu) is not zero (seed %s)", bytes, stress_seed);
}

static struct block make(uint64_t *seed)
{
	struct block b = {NULL, any_size(seed)};

	if (live + b.bytes > LIVE_MAX || touched + touched_by(b.bytes) > TOUCHED_MAX)
		b.bytes = 1 + probe_random(seed) % 500;
	switch (probe_random(seed) % 8) {
	case 0:
	case 1:
		b.at = calloc(1, b.bytes);
		if (b.at != NULL)
			require_zero(b.at, b.bytes);
		break;
	case 2: b.at = aligned(seed, b.bytes); break;
	default: b.at = malloc(b.bytes);
	}
	probe_require(b.at != NULL || b.bytes > 200 * MIB, "no memory for %zu bytes", b.bytes);
	if (b.at == NULL)
		return b;
	probe_require((uintptr_t)b.at % 16 == 0, "%p is not aligned", (void *)b.at);
	size_t usable = malloc_usable_size(b.at);
	probe_require(usable >= b.bytes, "usable size %zu of %zu bytes", usable, b.bytes);
	if (usable < 65536 && probe_random(seed) % 4 == 0)
		b.bytes = usable;
	live += b.bytes;
	touched += touched_by(b.bytes);
	fill(b.at, b.bytes);
	return b;
}

static struct block resize(struct block b, uint64_t *seed)
{
	size_t bytes = probe_random(seed) % 2 ? any_size(seed) : b.bytes + b.bytes / 3 + 1;
	const unsigned char *was = b.at;

	if (live + bytes > LIVE_MAX || touched + touched_by(bytes) > TOUCHED_MAX)
		bytes = b.bytes / 2 + 1;
	require_intact(b);
	unsigned char *p = realloc(b.at, bytes);
	if (p == NULL) {
		probe_require(bytes > 200 * MIB, "no memory for %zu bytes", bytes);
		require_intact(b);
		return b;
	}
	probe_require(intact(p, was, b.bytes, bytes < b.bytes ? bytes : b.bytes),
		      "realloc from %zu to %zu bytes lost content (seed %s)", b.bytes, bytes,
		      stress_seed);
	live += bytes - b.bytes;
	touched += touched_by(bytes) - touched_by(b.bytes);
	b = (struct block){p, bytes};
	fill(b.at, b.bytes);
	return b;
}

static struct block swap(struct block b, uint64_t *seed)
{
	struct place *s = &shelf[probe_random(seed) % SHELF];

	if (atomic_exchange(&s->taken, true))
		return b;
	struct block old = s->block;
	s->block = b;
	atomic_store(&s->taken, false);
	return old;
}

static void step(uint64_t *seed)
{
	struct block b = swap((struct block){NULL, 0}, seed);

	if (b.at != NULL && probe_random(seed) % 3 == 0)
		b = resize(b, seed);
	else {
		drop(b);
		b = make(seed);
	}
	drop(swap(b, seed));
	done++;
}

/* --- signals: the handler has blocks of its own, since the interrupted code may hold a place --- */

static void on_timer(int sig)
{
	int saved = errno;
	uint32_t r = probe_random(&handler_seed);
	uint32_t bytes = 8 + (r % 100 == 0 ? r % 100000 : r % 800);
	unsigned char *p = r % 3 ? malloc(bytes) : calloc(1, bytes);

	(void)sig;
	probe_require(p != NULL && (r % 3 || probe_zero(p, bytes)), "allocation in a handler");
	memcpy(p, &bytes, 4);
	p[bytes - 1] = 0x77;
	p = atomic_exchange(&handler_shelf[r / 7 % HANDLER_SHELF], p);
	if (p != NULL) {
		memcpy(&bytes, p, 4);
		probe_require(bytes < 101000 && p[bytes - 1] == 0x77, "a handler's block changed");
		free(p);
	}
	signals_handled++;
	errno = saved;
}

static timer_t start_timer(long period_ns)
{
	struct itimerspec period = {{0, period_ns}, {0, period_ns}};
	struct sigevent event;
	timer_t timer;

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
	return timer;
}

/* --- the threads --------------------------------------------------------------------------- */

static void *work(void *arg)
{
	uint64_t seed = (uintptr_t)arg;
	timer_t timer = 0;
	bool timed = seed % 3 != 0;

	handler_seed = seed + 99;
	if (timed)
		timer = start_timer(seed % 2 ? 50000 : 1000000);
	for (unsigned n = 2000 + probe_random(&seed) % 60000; n > 0 && !stop; n--) {
		step(&seed);
		while (idle && !stop)
			probe_sleep_ms(20);
	}
	if (timed)
		timer_delete(timer);
	return NULL; /* what it allocated stays on the shelf for others */
}

static void *start_workers(void *arg)
{
	uint64_t seed = (uintptr_t)arg;
	pthread_t t[THREADS];

	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, work, (void *)(uintptr_t)(probe_random(&seed) | 1));
	for (size_t i = 0; !stop; i = (i + 1) % THREADS) {
		pthread_join(t[i], NULL);
		pthread_create(&t[i], NULL, work, (void *)(uintptr_t)(probe_random(&seed) | 1));
	}
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	return NULL;
}

static void *load_plugins(void *arg)
{
	int (*use)(void);

	while (!stop) {
		void *lib = dlopen("libstress_plugin.so", RTLD_NOW | RTLD_LOCAL);
		void *symbol = lib ? dlsym(lib, "stress_plugin_use") : NULL;
		memcpy(&use, &symbol, sizeof(use));
		probe_require(symbol != NULL && use(), "the plug-in cannot be used");
		dlclose(lib);
		probe_sleep_ms(3);
	}
	return arg;
}

static void *trim(void *arg)
{
	for (int i = 0; !stop; i++) {
		probe_sleep_ms(150);
		malloc_trim(0);
		if (i % 40 == 39) {
			idle = true;
			probe_sleep_ms(1300);
			idle = false;
		}
	}
	return arg;
}

static void child(uint64_t seed)
{
	signal(SIGALRM, SIG_DFL);
	probe_limit();
	handler_seed = seed;
	for (int i = 0; i < 300; i++)
		step(&seed);
	_exit(0);
}

static pid_t start_child(unsigned how)
{
	if (how == 0 && _Fork != NULL)
		return _Fork();
	if (how == 1)
		return (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
	if (how == 2) {
		pid_t pid = vfork();
		if (pid == 0) {
			execl("/bin/true", "true", (char *)NULL);
			_exit(0);
		}
		return pid;
	}
	return fork();
}

int main(int argc, char **argv)
{
	unsigned seconds = argc > 1 ? (unsigned)atoi(argv[1]) : getenv("TM_LONG") ? 600 : 30;
	struct sigaction action;
	pthread_t t[3];

	if (argc > 2)
		snprintf(stress_seed, sizeof(stress_seed), "%s", argv[2]);
	uint64_t seed = strtoul(stress_seed, NULL, 0) * 0x9e3779b97f4a7c15ull | 1;
	uint64_t end = probe_now_us() + (uint64_t)seconds * 1000000;
	alarm(seconds + 2 * probe_patience_s());
	memset(&action, 0, sizeof(action));
	action.sa_handler = on_timer;
	action.sa_flags = SA_RESTART;
	sigaction(SIGUSR1, &action, NULL);
	pthread_create(&t[0], NULL, start_workers, (void *)(uintptr_t)probe_random(&seed));
	pthread_create(&t[1], NULL, load_plugins, NULL);
	pthread_create(&t[2], NULL, trim, NULL);
	while (probe_now_us() < end) {
		unsigned how = probe_random(&seed) % 6;
		pid_t pid = start_child(how);
		if (pid == 0)
			child(probe_random(&seed) | 1);
		probe_child_ok(pid, how == 0 ? "_Fork" : how == 1 ? "clone" : "fork");
		forks++;
		probe_sleep_ms(10);
	}
	stop = true;
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	for (size_t i = 0; i < SHELF; i++)
		drop(shelf[i].block);
	probe_require(live == 0, "%zu bytes are live at the end", live);
	fprintf(stderr, "%lu steps, %lu forks, %lu signals\n", done, forks, signals_handled);
	return 0;
}
