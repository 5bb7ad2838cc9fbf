// SPDX-License-Identifier: MIT
// A static object whose destructor frees, allocates and frees again, after everybody else's.
#include <cstdlib>
#include <map>
#include <string>

struct late {
	std::map<int, std::string> names;
	char *volatile raw;
	late() : raw(static_cast<char *>(std::malloc(5000)))
	{
		for (int i = 0; i < 3000; i++)
			names[i] = "name number " + std::to_string(i) + " of a long list of names";
	}
	~late()
	{
		for (int i = 0; i < 3000; i += 2)
			names.erase(i);
		for (int i = 0; i < 1000; i++)
			names[i * 2] = std::string(static_cast<size_t>(i), 'z');
		std::free(raw);
		raw = static_cast<char *>(std::calloc(1, 1 << 20));
		std::free(raw);
	}
};

static late held __attribute__((init_priority(101)));
