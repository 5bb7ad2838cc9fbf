/* SPDX-License-Identifier: MIT */
/* libs: libuses_whole_family.so */
/* build: -rdynamic */
/*
 * H23, log 30 32: a program that bundles an allocator exports malloc, calloc, realloc and free,
 * but not the aligned ones (rust#85076, fd#2121): a library's posix_memalign is ours, its free the
 * program's, which hands strangers to the next free, us. And its own blocks reach us by
 * free in libraries bound elsewhere. Failure: a crash where plain libc has none.
 */
#include "claim.h"

static char arena[64 << 20] __attribute__((aligned(16)));
static size_t used;
static unsigned long own_frees, passed_frees;

int library_work(void);

struct head {
	size_t size;
	size_t pad;
};

static bool is_own(const void *p)
{
	return (const char *)p >= arena && (const char *)p < arena + sizeof(arena);
}

void *malloc(size_t size)
{
	size_t bytes = (size + sizeof(struct head) + 15) & ~(size_t)15;
	size_t at = __atomic_fetch_add(&used, bytes, __ATOMIC_RELAXED);

	if (at + bytes > sizeof(arena))
		return NULL;
	struct head *h = (struct head *)(void *)(arena + at);
	h->size = size;
	return h + 1;
}

void *calloc(size_t n, size_t size)
{
	return malloc(n * size); /* the arena is never used twice */
}

void free(void *p)
{
	static void (*next)(void *);

	if (!p)
		return;
	if (is_own(p)) {
		own_frees++;
		return;
	}
	passed_frees++;
	if (!next) {
		void *found = dlsym(RTLD_NEXT, "free");
		memcpy(&next, &found, sizeof(found));
	}
	next(p);
}

void *realloc(void *p, size_t size)
{
	static void *(*next)(void *, size_t);

	if (p && !is_own(p)) {
		void *found = dlsym(RTLD_NEXT, "realloc");
		memcpy(&next, &found, sizeof(found));
		return next(p, size);
	}
	void *q = malloc(size);
	if (p && q) {
		size_t old = ((struct head *)p)[-1].size;
		memcpy(q, p, old < size ? old : size);
	}
	return q;
}

int main(void)
{
	char *line = NULL;
	size_t room = 0;

	claim(library_work() == 0, "the library's work");
	FILE *f = fopen("/proc/self/maps", "r");
	while (getline(&line, &room, f) > 0)
		used += 0;
	fclose(f);
	free(line);
	free(realpath("/proc/self/exe", NULL));
	claim(own_frees > 1000 && passed_frees > 1000, "%lu own, %lu passed on", own_frees,
	      passed_frees);
	return claim_end();
}
