// SPDX-License-Identifier: MIT
/* build: -Wno-alloc-size-larger-than */
/*
 * H36: where memory cannot be had, operator new runs the new_handler again and again, which may
 * free a reserve, throw, or unset itself, and then throws std::bad_alloc; the nothrow forms give
 * NULL, also when the handler throws; the aligned forms do the same. Failure: an abort, NULL from
 * plain new, an endless loop, or a handler never called.
 */
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include <sys/resource.h>

#include "claim.h"

static int calls;
static void *reserve;
static size_t hopeless = static_cast<size_t>(1) << 60;

static void count_three()
{
	if (++calls == 3)
		std::set_new_handler(nullptr);
}

static void throw_out()
{
	calls++;
	throw std::bad_alloc();
}

static void free_reserve()
{
	calls++;
	std::free(reserve);
	reserve = nullptr;
	std::set_new_handler(nullptr);
}

template <class F> static bool throws(F make)
{
	try {
		void *volatile p = make();
		std::free(p);
	} catch (const std::bad_alloc &) {
		return true;
	}
	return false;
}

template <class F> static void failing(const char *name, F make, F nothrow)
{
	claim(throws(make), "%s: no bad_alloc without a handler", name);
	claim(!nothrow(), "%s nothrow: a pointer", name);
	calls = 0;
	std::set_new_handler(count_three);
	claim(throws(make) && calls == 3, "%s: handler ran %d times, not 3", name, calls);
	calls = 0;
	std::set_new_handler(count_three);
	claim(!nothrow() && calls == 3, "%s nothrow: handler ran %d times, not 3", name, calls);
	calls = 0;
	std::set_new_handler(throw_out);
	claim(throws(make) && calls == 1, "%s: the handler's throw, %d calls", name, calls);
	calls = 0;
	claim(!nothrow() && calls == 1, "%s nothrow: the handler's throw, %d calls", name, calls);
	std::set_new_handler(nullptr);
}

int main()
{
	using function = void *(*)();
	failing<function>(
		"new", [] { return ::operator new(hopeless); },
		[] { return ::operator new(hopeless, std::nothrow); });
	failing<function>(
		"new[]", [] { return ::operator new[](hopeless); },
		[] { return ::operator new[](hopeless, std::nothrow); });
	failing<function>(
		"new aligned", [] { return ::operator new(hopeless, std::align_val_t(256)); },
		[] { return ::operator new(hopeless, std::align_val_t(256), std::nothrow); });
	failing<function>(
		"new[] aligned", [] { return ::operator new[](hopeless, std::align_val_t(4096)); },
		[] { return ::operator new[](hopeless, std::align_val_t(4096), std::nothrow); });

	/* A reserve that the handler frees is what the second try lives on. */
	struct rlimit limit;
	reserve = std::malloc(48 << 20);
	std::memset(reserve, 1, 48 << 20);
	limit.rlim_cur = static_cast<rlim_t>(claim_status_kib("VmSize:") + 16384) << 10;
	limit.rlim_max = RLIM_INFINITY;
	setrlimit(RLIMIT_AS, &limit);
	calls = 0;
	std::set_new_handler(free_reserve);
	try {
		void *p = ::operator new(32 << 20);
		std::memset(p, 2, 32 << 20);
		::operator delete(p);
	} catch (const std::bad_alloc &) {
		claim(false, "the freed reserve did not help");
	}
	claim(calls == 1, "the reserve was freed %d times", calls);
	return claim_end();
}
