// SPDX-License-Identifier: MIT
// A C++ plug-in for a C program: libstdc++ comes with it and is visible to it alone.
/* build: -Wno-alloc-size-larger-than -Wno-mismatched-new-delete */
#include <cstddef>
#include <new>
#include <string>
#include <vector>

static int calls;
static size_t hopeless = static_cast<size_t>(1) << 60;

static void handler()
{
	if (++calls == 2)
		std::set_new_handler(nullptr);
}

// 0: all as the standard says; else the number of the claim that does not hold.
extern "C" int guest_try()
{
	std::vector<std::string> work;
	for (size_t i = 0; i < 2000; i++)
		work.push_back(std::string(i, 'g'));
	try {
		::operator delete(::operator new(hopeless));
		return 1;
	} catch (const std::bad_alloc &) {
	}
	calls = 0;
	std::set_new_handler(handler);
	try {
		::operator delete(::operator new[](hopeless));
		return 2;
	} catch (const std::bad_alloc &) {
		if (calls != 2)
			return 3;
	}
	if (::operator new(hopeless, std::nothrow))
		return 4;
	try {
		::operator delete(::operator new(hopeless, std::align_val_t(128)),
				  std::align_val_t(128));
		return 5;
	} catch (const std::bad_alloc &) {
	}
	return work[1999].size() == 1999 ? 0 : 6;
}
