/* SPDX-License-Identifier: MIT */
/*
 * H20: a free, realloc or usable_size of what malloc never gave (another mapping, a variable,
 * the stack, the middle of a block) or gave and took back already is counted and ignored: no
 * crash, no hang, and no later block given twice. Each case runs in a child, then works the
 * heap and looks for overlaps. Failure: abort (glibc), segfault, hang, or one block given twice.
 */
#include "claim.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

static char global[4096] __attribute__((aligned(4096)));
static const char constant[64] = "constant";

static void *hide(const void *p)
{
	void *q;

	memcpy(&q, &p, sizeof(q));
	return claim_hide(q);
}

static void *a_mapping(void)
{
	return mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void free_elsewhere(void *p)
{
	pthread_t thread;

	pthread_create(&thread, NULL, (void *(*)(void *))(void (*)(void))free, p);
	pthread_join(thread, NULL);
}

static void twice(size_t size, int between)
{
	void *p = malloc(size), *other[64];

	for (int i = 0; i < between; i++)
		other[i] = malloc(size);
	free(p);
	for (int i = 0; i < between; i++)
		free(other[i]);
	free(hide(p));
	void *a = malloc(size), *b = malloc(size);
	claim(a != b, "a block of %zu given twice: %p", size, a);
	free(a);
	free(b);
}

static void inside(size_t size, size_t at)
{
	char *p = malloc(size);

	memset(p, 7, size);
	free(hide(p + at));
	char *q = malloc(size);
	claim(q + size <= p || p + size <= q, "%p handed out inside %p", (void *)q, (void *)p);
	memset(q, 8, size);
	for (size_t i = 0; i < size; i++)
		claim(p[i] == 7, "byte %zu of a live block changed", i);
	free(q);
	free(p);
}

static void case_mapping(void)
{
	char *p = a_mapping();
	free(hide(p));
	free(hide(p + 16));
	free(hide(p + 8192));
	p[0] = 1;
}

static void case_unmapped(void)
{
	char *p = a_mapping();
	munmap(p, 1 << 20);
	free(hide(p));
	free(hide(p + 64));
	p = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	free(hide(p));
	free(hide(p + 4096 + 16));
}

static void case_variables(void)
{
	char local[256];
	static char zero[100000];

	memset(local, 0, sizeof(local));
	free(hide(local + 32));
	free(hide(global));
	free(hide(global + 128));
	free(hide(constant));
	free(hide(zero + 50000));
	free(hide(environ));
	void *code;
	void (*function)(void) = case_variables;
	memcpy(&code, &function, sizeof(code));
	free(hide(code));
}

static void case_wild(void)
{
	static const uintptr_t wild[] = {1,
					 8,
					 16,
					 4096,
					 0xdeadbeef,
					 0x7fffffffe000,
					 0x800000000000,
					 0x5555555555555555,
					 0xffff800000000000,
					 0xffffffffff600000,
					 UINTPTR_MAX - 15,
					 UINTPTR_MAX};

	for (size_t i = 0; i < sizeof(wild) / sizeof(*wild); i++) {
		void *p;
		memcpy(&p, &wild[i], sizeof(p));
		free(hide(p));
	}
}

static void case_inside(void)
{
	static const size_t at[] = {1, 2, 8, 15, 16, 17, 32, 48};

	for (size_t size = 64; size < 5 << 20; size = size * 3 + 16) {
		for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++)
			inside(size, at[i]);
		inside(size, size / 2 & ~(size_t)15);
		inside(size, size - 1);
		if (size > 8192)
			inside(size, 4096);
		if (size > 140000)
			inside(size, 65536);
	}
}

static void case_twice(void)
{
	for (size_t size = 1; size < 9 << 20; size = size * 3 + 1) {
		twice(size, 0);
		twice(size, 1);
		twice(size, 40);
	}
}

static void case_twice_elsewhere(void)
{
	for (size_t size = 24; size < 9 << 20; size = size * 5) {
		void *p = malloc(size);
		free(p);
		free_elsewhere(hide(p));
		void *a = malloc(size), *b = malloc(size);
		claim(a != b, "freed again by a thread: %zu given twice", size);
		free(a), free(b);
		p = malloc(size);
		free_elsewhere(p);
		free(hide(p));
		free_elsewhere(hide(p));
		void *c[400];
		for (size_t i = 0; i < 400; i++)
			c[i] = size > 1 << 20 ? NULL : malloc(size);
		for (size_t i = 0; i < 400; i++)
			for (size_t j = 0; j < i; j++)
				claim(!c[i] || c[i] != c[j],
				      "freed first by a thread: %zu given twice", size);
		for (size_t i = 0; i < 400; i++)
			free(c[i]);
	}
}

static void case_after_trim(void)
{
	enum { BLOCKS = 3000 };
	static void *p[BLOCKS];

	for (size_t i = 0; i < BLOCKS; i++)
		p[i] = malloc(i % 100 ? 1500 : 300000);
	for (size_t i = 0; i < BLOCKS; i++)
		free(p[i]);
	malloc_trim(0);
	for (size_t i = 0; i < BLOCKS; i++)
		free(hide(p[i]));
}

static void case_after_realloc(void)
{
	for (size_t size = 16; size < 4 << 20; size *= 4) {
		char *p = malloc(size), *pin = malloc(size), *q = realloc(p, size * 9);
		if (q != p)
			free(hide(p));
		memset(q, 1, size * 9);
		free(q);
		free(pin);
	}
}

static void case_aligned_start(void)
{
	for (size_t align = 64; align <= 1 << 20; align *= 4) {
		char *p = memalign(align, 100);
		free(hide(p - 16));
		memset(p, 1, 100);
		free(hide(p + 16));
		free(p);
		free(hide(p));
	}
}

static void case_realloc_and_usable(void)
{
	char *mapping = a_mapping(), local[64] = {0};
	void *strange[] = {mapping, mapping + 64, global + 64, local + 16};

	for (size_t i = 0; i < 4; i++) {
		(void)malloc_usable_size(hide(strange[i]));
		(void)claim_hide(realloc(hide(strange[i]), 100));
	}
	char *p = malloc(500);
	(void)malloc_usable_size(hide(p + 16));
	(void)claim_hide(realloc(hide(p + 16), 1000));
	free(p);
	(void)malloc_usable_size(hide(p));
	(void)claim_hide(realloc(hide(p), 1000));
}

/* Blocks of many sizes, written whole; an overlap shows as a foreign byte. */
static void work_the_heap(void)
{
	enum { BLOCKS = 8000 };
	static unsigned char *block[BLOCKS];
	static size_t size[BLOCKS];

	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < BLOCKS; i++) {
			size[i] = i % 97 ? i * 31 % 2000 + 8 : i * 31 % 150000 + 8;
			block[i] = malloc(size[i]);
			claim(block[i], "malloc(%zu) afterwards", size[i]);
			memset(block[i], (int)(i * 7 % 251), size[i]);
		}
		for (unsigned i = 0; i < BLOCKS; i++) {
			claim(block[i][0] == i * 7 % 251 && block[i][size[i] - 1] == i * 7 % 251 &&
				      block[i][size[i] / 2] == i * 7 % 251,
			      "block %u overlaps another", i);
			free(block[i]);
		}
	}
	free(strdup("still"));
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {{"mapping", case_mapping},
	     {"unmapped", case_unmapped},
	     {"variables", case_variables},
	     {"wild", case_wild},
	     {"inside", case_inside},
	     {"twice", case_twice},
	     {"twice-elsewhere", case_twice_elsewhere},
	     {"after-trim", case_after_trim},
	     {"after-realloc", case_after_realloc},
	     {"aligned-start", case_aligned_start},
	     {"realloc-and-usable", case_realloc_and_usable}};

int main(int argc, char **argv)
{
	static struct claim_output out;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (argc > 1 && strcmp(argv[1], cases[i].name) == 0) {
			cases[i].run();
			work_the_heap();
			return claim_end();
		}
		if (argc == 1) {
			int status = claim_again(claim_preload(), cases[i].name, &out);
			claim(status == 0, "%s: status %d, %.300s", cases[i].name, status,
			      out.text);
		}
	}
	return claim_end();
}
