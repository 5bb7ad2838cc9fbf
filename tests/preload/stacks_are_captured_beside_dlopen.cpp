// SPDX-License-Identifier: MIT
// H73, H74: a library is loaded and unloaded, threads throw, and every few allocations a site is new,
// whose stack is walked. A signal handler allocates from new sites meanwhile.
// Failure: the walk takes a lock that the loader holds, or reads an object that has gone.
/* env: TIERMALLOC_DIR=$TMPDIR/ledgers TIERMALLOC_LEDGER=deep */
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <stdexcept>
#include <string>
#include <sys/time.h>
#include <thread>
#include <unistd.h>
#include <vector>

static std::atomic<bool> over;
static std::atomic<int> wrong;

static void load()
{
	while (!over) {
		void *lib = dlopen("libplugin_allocates.so", RTLD_NOW | RTLD_LOCAL);
		if (lib == nullptr || dlclose(lib) != 0)
			wrong++;
	}
}

/* Heights differ with depth and with what alloca took, so that keys never end. */
template <int N> __attribute__((noinline)) static void *place(size_t size)
{
	volatile char room[N * 16 + 16];
	room[0] = 0;
	void *volatile p = malloc(size + static_cast<size_t>(room[0]));
	return p;
}

__attribute__((noinline)) static void *descend(unsigned depth, size_t size)
{
	volatile char *room = static_cast<char *>(__builtin_alloca(depth % 7 * 16 + 16));
	room[0] = 0;
	if (depth == 0) {
		switch (size % 4) {
		case 0: return place<1>(size);
		case 1: return place<2>(size);
		case 2: return place<3>(size);
		default: return place<4>(size);
		}
	}
	void *p = descend(depth - 1, size);
	room[0] = 1;
	return p;
}

static void on_signal(int number)
{
	static unsigned n;
	free(descend(n++ % 40, static_cast<size_t>(number)));
}

static void work(unsigned me)
{
	for (unsigned i = me; !over; i++) {
		free(descend(i % 60, i % 5000));
		try {
			if (i % 3 == 0)
				throw std::runtime_error(std::string(60, 'x'));
		} catch (const std::runtime_error &e) {
			wrong += std::string(e.what()).size() != 60;
		}
	}
}

int main()
{
	const struct itimerval often = {{0, 500}, {0, 500}};
	std::vector<std::thread> threads;

	alarm(getenv("TM_LONG") ? 400 : 60);
	signal(SIGPROF, on_signal);
	threads.emplace_back(load);
	for (unsigned i = 0; i < 3; i++)
		threads.emplace_back(work, i * 1000);
	setitimer(ITIMER_PROF, &often, nullptr);
	std::this_thread::sleep_for(std::chrono::seconds(getenv("TM_LONG") ? 300 : 3));
	over = true;
	for (auto &t : threads)
		t.join();
	signal(SIGPROF, SIG_IGN);
	if (wrong != 0)
		std::fprintf(stderr, "wrong: %d results\n", wrong.load());
	return wrong != 0;
}
