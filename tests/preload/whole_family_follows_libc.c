/* SPDX-License-Identifier: MIT */
/* cross: yes */
/*
 * H30 H33 H34 H35: every allocating function with every edge size and alignment answers as glibc
 * does: pointer or NULL, alignment, errno, bytes that may be written, and any freeing function
 * takes it back. Failure: a name is missing (its blocks come from libc and our free meets a
 * stranger), errno stays 0, or a pointer where glibc has none.
 */
#include "claim.h"

static const size_t sizes[] = {0,
			       1,
			       7,
			       8,
			       15,
			       16,
			       17,
			       24,
			       25,
			       100,
			       1008,
			       1023,
			       1024,
			       1025,
			       2048,
			       4095,
			       4096,
			       4097,
			       32767,
			       32768,
			       32769,
			       65535,
			       65536,
			       65537,
			       131072,
			       1000000,
			       (size_t)2 << 20,
			       ((size_t)2 << 20) + 1,
			       ((size_t)33 << 20) - 1,
			       PTRDIFF_MAX - 65536,
			       PTRDIFF_MAX,
			       (size_t)PTRDIFF_MAX + 1,
			       SIZE_MAX - 65536,
			       SIZE_MAX - 16,
			       SIZE_MAX - 1,
			       SIZE_MAX};
static const size_t aligns[] = {0,
				1,
				2,
				3,
				4,
				7,
				8,
				15,
				16,
				24,
				32,
				48,
				64,
				128,
				1024,
				4096,
				5000,
				65536,
				131072,
				(size_t)2 << 20,
				(size_t)1 << 62,
				(SIZE_MAX >> 1) + 1,
				SIZE_MAX - 15,
				SIZE_MAX};

/* What must succeed and what cannot; between the two the machine decides. */
enum { GREATEST = 34 << 20 };
#define HOPELESS ((size_t)1 << 47)

static void *(*f_malloc)(size_t), *(*f_valloc)(size_t), *(*f_pvalloc)(size_t);
static void *(*f_calloc)(size_t, size_t), *(*f_memalign)(size_t, size_t);
static void *(*f_aligned_alloc)(size_t, size_t), *(*f_realloc)(void *, size_t);
static void *(*f_reallocarray)(void *, size_t, size_t);
static int (*f_posix_memalign)(void **, size_t, size_t);
static void (*f_free)(void *);
static size_t (*f_usable)(void *);

static void look(void *slot, const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);

	claim(found, "'%s' is missing", name);
	memcpy(slot, &found, sizeof(found));
}

static size_t power(size_t align)
{
	size_t p = 16;

	while (p < align)
		p <<= 1;
	return p;
}

static unsigned char pattern(size_t at)
{
	return (unsigned char)(at * 31 + 7);
}

/* A block of `size` at `align` by `name` is there, aligned, writable to its end, and goes back. */
static void good(const char *name, void *p, size_t align, size_t size)
{
	claim(p, "%s(align %zu, size %zu) failed, errno %d", name, align, size, errno);
	if (!p)
		return;
	size_t usable = f_usable(p);
	claim((uintptr_t)p % align == 0, "%s(align %zu, size %zu) = %p", name, align, size, p);
	claim(usable >= size, "%s(%zu): usable %zu", name, size, usable);
	for (size_t i = 0; i < usable; i += usable / 4096 + 1)
		((unsigned char *)p)[i] = pattern(i);
	if (usable)
		((unsigned char *)p)[usable - 1] = 1;
	errno = 77;
	f_free(p);
	claim(errno == 77, "free after %s(%zu): errno %d", name, size, errno);
}

static void bad(const char *name, void *p, size_t align, size_t size, int wanted)
{
	claim(!p && errno == wanted, "%s(align %zu, size %zu) = %p, errno %d, not %d", name, align,
	      size, p, errno, wanted);
	if (p)
		f_free(p);
}

static void by_size(size_t size)
{
	static const struct {
		const char *name;
		void *(**call)(size_t);
	} plain[] = {{"malloc", &f_malloc}, {"valloc", &f_valloc}, {"pvalloc", &f_pvalloc}};

	for (size_t i = 0; i < 3; i++) {
		errno = 0;
		void *p = (*plain[i].call)(size);
		if (size <= GREATEST)
			good(plain[i].name, p, i ? 4096 : 16,
			     i == 2 ? (size + 4095) & ~(size_t)4095 : size);
		else
			bad(plain[i].name, p, 0, size, ENOMEM);
	}
	errno = 0;
	void *fresh = f_realloc(NULL, size);
	if (size <= GREATEST)
		good("realloc(NULL)", fresh, 16, size);
	else
		bad("realloc(NULL)", fresh, 0, size, ENOMEM);

	unsigned char *kept = f_malloc(1000);
	for (size_t i = 0; i < 1000; i++)
		kept[i] = pattern(i);
	errno = 0;
	unsigned char *moved = f_realloc(kept, size);
	if (size == 0) {
		claim(!moved, "realloc(p, 0) = %p", (void *)moved);
		return;
	}
	unsigned char *now = size <= GREATEST ? moved : kept;
	if (size > GREATEST)
		claim(!moved && errno == ENOMEM, "realloc(p, %zu) = %p, errno %d", size,
		      (void *)moved, errno);
	for (size_t i = 0; now && i < 1000 && i < size; i++)
		claim(now[i] == pattern(i), "realloc(p, %zu): byte %zu changed", size, i);
	if (size <= GREATEST)
		good("realloc", moved, 16, size);
	else
		f_free(kept);
}

static void by_product(size_t a, size_t b)
{
	size_t bytes;
	bool over = __builtin_mul_overflow(a, b, &bytes);

	if (!over && bytes > GREATEST && bytes < HOPELESS)
		return;
	errno = 0;
	unsigned char *p = f_calloc(a, b);
	if (!over && bytes <= GREATEST) {
		size_t dirty = 0;
		for (size_t i = 0; p && i < bytes; i += bytes / 8192 + 1)
			dirty += p[i];
		claim(!dirty, "calloc(%zu, %zu) is not zero", a, b);
		good("calloc", p, 16, bytes);
	} else {
		bad("calloc", p, a, b, ENOMEM);
	}
	unsigned char *kept = f_malloc(40);
	memset(kept, 5, 40);
	errno = 0;
	p = f_reallocarray(kept, a, b);
	if (!over && bytes == 0) {
		claim(!p, "reallocarray(p, %zu, %zu) = %p", a, b, (void *)p);
	} else if (!over && bytes <= GREATEST) {
		claim(p && p[0] == 5, "reallocarray(p, %zu, %zu) lost its bytes", a, b);
		good("reallocarray", p, 16, bytes);
	} else {
		claim(!p && errno == ENOMEM && kept[39] == 5, "reallocarray(p, %zu, %zu): errno %d",
		      a, b, errno);
		f_free(kept);
	}
}

static void by_align(size_t align, size_t size)
{
	bool is_power = align && !(align & (align - 1));
	bool fits = size <= GREATEST && align <= GREATEST;

	errno = 0;
	void *p = f_memalign(align, size);
	if (align > (SIZE_MAX >> 1) + 1)
		bad("memalign", p, align, size, EINVAL);
	else if (fits)
		good("memalign", p, power(align), size);
	else
		bad("memalign", p, align, size, ENOMEM);

	errno = 0;
	p = f_aligned_alloc(align, size);
	if (!is_power && !p) /* glibc 2.38 began to refuse what is no power of two */
		claim(errno == EINVAL || errno == ENOMEM, "aligned_alloc(%zu, %zu): errno %d",
		      align, size, errno);
	else if (fits)
		good("aligned_alloc", p, power(align), size);
	else
		bad("aligned_alloc", p, align, size, ENOMEM);

	void *untouched = &p, *out = untouched;
	errno = 77;
	int rc = f_posix_memalign(&out, align, size);
	if (!is_power || align % sizeof(void *)) {
		claim(rc == EINVAL && out == untouched, "posix_memalign(%zu, %zu) = %d", align,
		      size, rc);
	} else if (fits) {
		claim(rc == 0, "posix_memalign(%zu, %zu) = %d", align, size, rc);
		if (rc == 0)
			good("posix_memalign", out, power(align), size);
	} else {
		claim(rc == ENOMEM && out == untouched, "posix_memalign(%zu, %zu) = %d", align,
		      size, rc);
	}
}

int main(void)
{
	look(&f_malloc, "malloc"), look(&f_free, "free"), look(&f_calloc, "calloc");
	look(&f_realloc, "realloc"), look(&f_reallocarray, "reallocarray");
	look(&f_memalign, "memalign"), look(&f_aligned_alloc, "aligned_alloc");
	look(&f_posix_memalign, "posix_memalign"), look(&f_valloc, "valloc");
	look(&f_pvalloc, "pvalloc"), look(&f_usable, "malloc_usable_size");
	if (claim_end())
		return 1;
	claim(f_usable(NULL) == 0, "malloc_usable_size(NULL) is not 0");
	f_free(NULL);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		by_size(sizes[i]);
		for (size_t j = 0; j < sizeof(sizes) / sizeof(*sizes); j++)
			by_product(sizes[i], sizes[j]);
		for (size_t j = 0; j < sizeof(aligns) / sizeof(*aligns); j++)
			by_align(aligns[j], sizes[i]);
	}
	return claim_end();
}
