// SPDX-License-Identifier: MIT
/*
 * H29 H30 H38 H39, log 35: every operator new with every operator delete, plain, array, aligned,
 * nothrow and sized, also with a wrong size, by free and by realloc; the aligned ones are aligned,
 * blocks are at least 16-aligned, a size is a hint only, NULL may be deleted. Failure: a crash
 * (jemalloc trusts the size) or an operator that comes from another allocator.
 */
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "claim.h"

static const size_t sizes[] = {0, 1, 8, 16, 17, 40, 200, 1024, 5000, 40000, 70000, 300000, 3 << 20};
static const size_t aligns[] = {1, 8, 16, 32, 64, 512, 4096, 65536, 2 << 20};

template <class F> static F symbol(const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);
	F f;
	claim(found, "%s is missing", name);
	std::memcpy(&f, &found, sizeof(f));
	return f;
}

struct maker {
	const char *name;
	void *(*make)(size_t size, size_t align);
	bool aligned;
};

static const maker makers[] = {
	{"new", [](size_t n, size_t) { return ::operator new(n); }, false},
	{"new[]", [](size_t n, size_t) { return ::operator new[](n); }, false},
	{"new nothrow", [](size_t n, size_t) { return ::operator new(n, std::nothrow); }, false},
	{"new[] nothrow", [](size_t n, size_t) { return ::operator new[](n, std::nothrow); },
	 false},
	{"new aligned", [](size_t n, size_t a) { return ::operator new(n, std::align_val_t(a)); },
	 true},
	{"new[] aligned",
	 [](size_t n, size_t a) { return ::operator new[](n, std::align_val_t(a)); }, true},
	{"new aligned nothrow",
	 [](size_t n, size_t a) { return ::operator new(n, std::align_val_t(a), std::nothrow); },
	 true},
	{"new[] aligned nothrow",
	 [](size_t n, size_t a) { return ::operator new[](n, std::align_val_t(a), std::nothrow); },
	 true},
	{"malloc", [](size_t n, size_t) { return std::malloc(n); }, false},
	{"aligned_alloc", [](size_t n, size_t a) { return std::aligned_alloc(a, n); }, true},
};

struct taker {
	const char *name;
	void (*take)(void *p, size_t size, size_t align);
};

static const taker takers[] = {
	{"delete", [](void *p, size_t, size_t) { ::operator delete(p); }},
	{"delete[]", [](void *p, size_t, size_t) { ::operator delete[](p); }},
	{"delete nothrow", [](void *p, size_t, size_t) { ::operator delete(p, std::nothrow); }},
	{"delete[] nothrow", [](void *p, size_t, size_t) { ::operator delete[](p, std::nothrow); }},
	{"delete sized", [](void *p, size_t n, size_t) { ::operator delete(p, n); }},
	{"delete[] sized", [](void *p, size_t n, size_t) { ::operator delete[](p, n); }},
	{"delete aligned",
	 [](void *p, size_t, size_t a) { ::operator delete(p, std::align_val_t(a)); }},
	{"delete[] aligned",
	 [](void *p, size_t, size_t a) { ::operator delete[](p, std::align_val_t(a)); }},
	{"delete sized aligned",
	 [](void *p, size_t n, size_t a) { ::operator delete(p, n, std::align_val_t(a)); }},
	{"delete[] sized aligned",
	 [](void *p, size_t n, size_t a) { ::operator delete[](p, n, std::align_val_t(a)); }},
	{"delete aligned nothrow",
	 [](void *p, size_t, size_t a) {
		 ::operator delete(p, std::align_val_t(a), std::nothrow);
	 }},
	{"delete[] aligned nothrow",
	 [](void *p, size_t, size_t a) {
		 ::operator delete[](p, std::align_val_t(a), std::nothrow);
	 }},
	{"delete of a wrong size",
	 [](void *p, size_t n, size_t) { ::operator delete(p, n * 9 + 1); }},
	{"delete of a smaller size",
	 [](void *p, size_t n, size_t) { ::operator delete[](p, n / 3); }},
	{"free", [](void *p, size_t, size_t) { std::free(p); }},
	{"realloc and free",
	 [](void *p, size_t n, size_t) { std::free(std::realloc(p, n + 999)); }},
};

static void pair(const maker &m, const taker &t, size_t size, size_t align)
{
	unsigned char *p = static_cast<unsigned char *>(m.make(size, align));
	size_t wanted = m.aligned && align > 16 ? align : 16;

	claim(p, "%s(%zu) gave NULL", m.name, size);
	claim(reinterpret_cast<uintptr_t>(p) % wanted == 0, "%s(%zu, align %zu) = %p", m.name, size,
	      align, static_cast<void *>(p));
	std::memset(p, 0x77, size);
	errno = 77;
	t.take(p, size, align);
	if (std::strncmp(t.name, "realloc", 7) != 0)
		claim(errno == 77, "%s: errno %d", t.name, errno);
}

struct base {
	long a = 1;
};
struct derived : base {
	long b[30] = {2};
};

int main()
{
	for (const maker &m : makers)
		for (const taker &t : takers)
			for (size_t size : sizes)
				for (size_t align : aligns)
					if (m.aligned || align == 16)
						pair(m, t, size, align);
	for (const taker &t : takers)
		if (std::strcmp(t.name, "realloc and free") != 0)
			t.take(nullptr, 10, 64);
	for (int i = 0; i < 10000; i++) {
		base *volatile p =
			new derived; /* log 35: no virtual destructor, the size is the base's */
		::operator delete(static_cast<void *>(p), sizeof(base));
	}
	auto c23_sized = symbol<void (*)(void *, size_t)>(claim_ours() ? "free_sized" : "free");
	auto c23_aligned = symbol<void (*)(void *, size_t, size_t)>(
		claim_ours() ? "free_aligned_sized" : "free");
	for (size_t size : sizes) {
		c23_sized(std::malloc(size), size);
		c23_aligned(std::aligned_alloc(64, size), 64, size);
	}
	std::vector<std::vector<char>> many;
	for (size_t i = 0; i < 2000; i++)
		many.emplace_back(i, 'x');
	return claim_end();
}
