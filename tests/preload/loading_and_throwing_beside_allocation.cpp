// SPDX-License-Identifier: MIT
// H73, H74, log 56, 57: one thread loads and unloads a plug-in whose constructors allocate, four
// threads throw exceptions or allocate and call backtrace, all from the first malloc on.
// Failure: the loader's lock and one of ours are taken in both orders, and the program hangs.
/* env: TIERMALLOC_LEDGER=on */
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <execinfo.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

static std::atomic<bool> over;
static std::atomic<int> wrong;

static void load()
{
	while (!over) {
		void *lib = dlopen("libplugin_allocates.so", RTLD_NOW | RTLD_LOCAL);
		if (lib == nullptr || dlsym(lib, "plugin_size") == nullptr || dlclose(lib) != 0)
			wrong++;
		if (dlsym(RTLD_DEFAULT, "no_such_symbol_anywhere") != nullptr ||
		    dlerror() == nullptr)
			wrong++;
	}
}

static int throw_below(int depth)
{
	std::string local(100, 'y');
	if (depth > 0)
		return throw_below(depth - 1) + static_cast<int>(local.size());
	throw std::runtime_error(local);
}

static void work(int me)
{
	std::vector<std::string> kept(100);

	for (unsigned long i = 0; !over; i++) {
		kept[i % 100] = std::string(i % 5000, 'z');
		if (me % 2 == 0) {
			try {
				throw_below(static_cast<int>(i % 10));
				wrong++;
			} catch (const std::runtime_error &e) {
				wrong += std::strlen(e.what()) != 100;
			}
		} else {
			void *frame[16];
			char **names = backtrace_symbols(frame, backtrace(frame, 16));
			wrong += names == nullptr;
			free(names);
		}
	}
}

int main()
{
	std::vector<std::thread> threads;

	alarm(getenv("TM_LONG") ? 400 : 60);
	threads.emplace_back(load);
	for (int i = 0; i < 4; i++)
		threads.emplace_back(work, i);
	std::this_thread::sleep_for(std::chrono::seconds(getenv("TM_LONG") ? 300 : 3));
	over = true;
	for (auto &t : threads)
		t.join();
	if (wrong != 0)
		std::fprintf(stderr, "wrong: %d results\n", wrong.load());
	return wrong != 0;
}
