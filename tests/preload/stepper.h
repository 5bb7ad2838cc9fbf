/* SPDX-License-Identifier: MIT */
/*
 * Stops at every instruction of the library that a piece of code executes: the trap flag is set in
 * this thread, and the handler calls back. x86-64 only.
 */
#ifndef TESTS_PRELOAD_STEPPER_H
#define TESTS_PRELOAD_STEPPER_H

#include "trap.h"
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>

typedef void stepper_stop_fn(uintptr_t at);

/* Offsets into the library's code are told to the callback. */
static uintptr_t stepper_text, stepper_text_end;
static __thread stepper_stop_fn *stepper_stop;

#if defined(__x86_64__)
/* Where the library's code lies: its executable mapping. */
static inline void stepper_init(void)
{
	const char *lib = strrchr(getenv("TM_LIB"), '/') + 1;
	FILE *f = fopen("/proc/self/maps", "r");
	char line[4352], flags[8];

	probe_require(f != NULL, "no maps");
	while (fgets(line, sizeof(line), f) != NULL) {
		uintptr_t begin, end;

		if (sscanf(line, "%lx-%lx %7s", &begin, &end, flags) == 3 && flags[2] == 'x' &&
		    strstr(line, lib) != NULL) {
			stepper_text = begin;
			stepper_text_end = end;
		}
	}
	fclose(f);
	probe_require(stepper_text != 0, "the library is not mapped");
}

/* A repeated store or copy would trap for every byte: done here at once. */
static inline void stepper_repeat(greg_t *r)
{
	const unsigned char *code = (const unsigned char *)r[REG_RIP];
	unsigned wide = code[1] == 0x48;
	size_t bytes = (size_t)r[REG_RCX] << (wide ? 3 : 0);
	unsigned char op = code[1 + wide];

	if (code[0] != 0xf3 || (op != 0xa4 + wide && op != 0xaa + wide) || bytes == 0)
		return;
	if (op < 0xa8) {
		memcpy((void *)r[REG_RDI], (const void *)r[REG_RSI], bytes);
		r[REG_RSI] += (greg_t)bytes;
	} else {
		for (size_t i = 0; i < bytes; i++)
			((volatile unsigned char *)r[REG_RDI])[i] =
				(unsigned char)((uint64_t)r[REG_RAX] >> (wide ? i % 8 * 8 : 0));
	}
	r[REG_RDI] += (greg_t)bytes;
	r[REG_RCX] = 0;
	r[REG_RIP] += 2 + wide;
}

/*
 * A child would start with the trap flag, and a trap while the signal is blocked would end the program:
 * so the flag goes before a clone, and the signal is never blocked.
 */
static inline void stepper_call(greg_t *r)
{
	static __thread uint64_t mask;
	const unsigned char *code = (const unsigned char *)r[REG_RIP];

	if (code[0] != 0x0f || code[1] != 0x05)
		return;
	if (r[REG_RAX] == SYS_clone || r[REG_RAX] == SYS_clone3) {
		r[REG_EFL] &= ~TRAP_FLAG;
	} else if (r[REG_RAX] == SYS_rt_sigprocmask && r[REG_RSI] != 0) {
		memcpy(&mask, (const void *)r[REG_RSI], sizeof(mask));
		mask &= ~((uint64_t)1 << (SIGTRAP - 1));
		r[REG_RSI] = (greg_t)(uintptr_t)&mask;
	}
}

static inline void stepper_trapped(int sig, siginfo_t *info, void *context)
{
	ucontext_t *c = context;
	uintptr_t at = (uintptr_t)c->uc_mcontext.gregs[REG_RIP];

	(void)sig;
	(void)info;
	if (stepper_stop == NULL) {
		trap_again(context, false);
		return;
	}
	trap_again(context, true);
	if (at >= stepper_text && at < stepper_text_end)
		stepper_stop(at - stepper_text);
	stepper_repeat(c->uc_mcontext.gregs);
	stepper_call(c->uc_mcontext.gregs);
}

/* From here on, until stepper_end or the thread's end. */
static inline void stepper_begin(stepper_stop_fn *stop)
{
	struct sigaction action = {.sa_flags = SA_SIGINFO};

	action.sa_sigaction = stepper_trapped;
	sigaction(SIGTRAP, &action, NULL);
	stepper_stop = stop;
	raise(SIGTRAP);
}

static inline void stepper_end(void)
{
	stepper_stop = NULL;
	__asm__ volatile("nop\n\tnop");
}
#else
static inline void stepper_init(void)
{
	probe_skip("instructions can be stepped through on x86-64 only");
}
static inline void stepper_begin(stepper_stop_fn *stop)
{
	stepper_stop = stop;
}
static inline void stepper_end(void)
{
	stepper_stop = NULL;
}
#endif

/* --- what the library does on its slow paths -------------------------------------------------- */

static struct {
	void *others[64]; /* blocks of the main thread */
	void *kept[8];
} stepper;

static void stepper_take_small(void)
{
	stepper.kept[0] = malloc(176);
}

static void stepper_take_medium(void)
{
	stepper.kept[1] = malloc(12000);
}

static void stepper_take_large(void)
{
	stepper.kept[2] = malloc(200000);
	stepper.kept[3] = calloc(1, 700000);
}

static void stepper_free_large(void)
{
	free(stepper.kept[2]);
	free(stepper.kept[3]);
}

static void stepper_grow(void)
{
	char *p = malloc(70000);

	for (size_t bytes = 1300000; bytes < 40000000; bytes *= 3)
		p = realloc(p, bytes);
	free(p);
}

static void stepper_free_for_others(void)
{
	for (int i = 0; i < 64; i++) {
		free(stepper.others[i]);
		stepper.others[i] = NULL;
	}
}

static void stepper_use_spans(void)
{
	static void *p[60];

	for (int i = 0; i < 60; i++)
		p[i] = malloc(8000);
	for (int i = 0; i < 60; i++)
		free(p[i]);
}

static void stepper_trim(void)
{
	malloc_trim(0);
}

static void stepper_use_blocks(void)
{
	for (int i = 0; i < 60; i++)
		stepper.kept[4] = malloc(100000);
}

static const struct stepper_work {
	const char *name;
	void (*run)(void);
} stepper_works[] = {
	{"a small slot", stepper_take_small}, {"a medium slot", stepper_take_medium},
	{"large blocks", stepper_take_large}, {"free of large blocks", stepper_free_large},
	{"growing blocks", stepper_grow},     {"frees for others", stepper_free_for_others},
	{"spans", stepper_use_spans},         {"trim", stepper_trim},
	{"many blocks", stepper_use_blocks},
};

/* Every work in turn; `*what` is the name of the one at hand. */
static inline void stepper_run_works(const char **what, stepper_stop_fn *stop)
{
	for (size_t i = 0; i < sizeof(stepper_works) / sizeof(*stepper_works); i++) {
		*what = stepper_works[i].name;
		stepper_begin(stop);
		stepper_works[i].run();
		stepper_end();
	}
}

static stepper_stop_fn *stepper_life_stop;

static inline void *stepper_life(void *arg)
{
	stepper_begin(stepper_life_stop);
	free(malloc(100));
	return arg; /* and on to its end */
}

/* A thread's life, from its first request to its end. */
static inline void stepper_run_life(stepper_stop_fn *stop)
{
	pthread_t t;

	stepper_life_stop = stop;
	pthread_create(&t, NULL, stepper_life, NULL);
	pthread_join(t, NULL);
}

/* Whether to stop here: each place a few times, of those that the seed chooses. */
static inline bool stepper_chosen(const char *work, uintptr_t at, unsigned share)
{
	static const char *seen_work;
	static unsigned char seen[1 << 20];
	static uint64_t seed = 42;

	if (seen_work != work) {
		seen_work = work;
		memset(seen, 0, sizeof(seen));
	}
	if (at >= sizeof(seen) || seen[at] >= 2 || probe_random(&seed) % share != 0)
		return false;
	seen[at]++;
	return true;
}

#endif
