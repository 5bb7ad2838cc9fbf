// SPDX-License-Identifier: MIT
// Allocates from a constructor of the earliest priority and from a static object, frees both in
// destructors; the blocks cross from before the other libraries' constructors to after main.
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

static char *early[10000];

extern "C" __attribute__((constructor(101))) void early_allocate()
{
	for (int i = 0; i < 10000; i++) {
		early[i] = static_cast<char *>(std::malloc(static_cast<size_t>(i % 700 + 1)));
		if (!early[i] || reinterpret_cast<size_t>(early[i]) % 16)
			std::abort();
		std::memset(early[i], i, static_cast<size_t>(i % 700 + 1));
		if (i % 3 == 0) {
			std::free(early[i]);
			early[i] = static_cast<char *>(std::calloc(1, 5000));
		}
	}
}

struct holder {
	std::vector<std::string> strings;
	holder()
	{
		for (int i = 0; i < 10000; i++)
			strings.push_back("a string longer than the small buffer " +
					  std::to_string(i));
	}
	~holder()
	{
		for (size_t i = 0; i < strings.size(); i++)
			if (strings[i].compare(0, 8, "a string") != 0)
				std::abort();
	}
};

static holder held;

extern "C" __attribute__((destructor(101))) void late_free()
{
	for (int i = 0; i < 10000; i++)
		std::free(early[i]);
}
