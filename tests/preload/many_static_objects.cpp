// SPDX-License-Identifier: MIT
/*
 * H05 H18, log 7: 200 static objects register their destructors one by one while they allocate,
 * as mysqld does, and free at exit. Failure: a hang in the first registration or a crash at exit.
 */
#include <cstdlib>
#include <memory>
#include <string>

struct object {
	std::unique_ptr<std::string> text;
	size_t size;
	explicit object(size_t n) : text(new std::string(n * 7, 'x')), size(n * 7)
	{
	}
	~object()
	{
		if (text->size() != size || (size && text->at(size - 1) != 'x'))
			std::abort();
	}
};

template <int N> static size_t construct()
{
	static object here(N);
	return here.size + construct<N - 1>();
}

template <> size_t construct<0>()
{
	return 0;
}

static size_t total = construct<200>();

int main()
{
	return total == 7 * 200 * 201 / 2 ? 0 : 1;
}
