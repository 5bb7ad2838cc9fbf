// SPDX-License-Identifier: MIT
// The program of stacks_are_those_of_the_program.py: allocates from known places and writes, for each,
// the return addresses that the C++ run-time's unwinder sees there.
/* run: none */
/* build: -O2 -fomit-frame-pointer -fno-optimize-sibling-calls -ldl */
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <string>
#include <unistd.h>
#include <vector>

static void *keep[1000];
static int kept;

__attribute__((noinline)) static void tell(const char *name, void *code)
{
	void *frame[64];
	int n = name == nullptr ? 0 : backtrace(frame, 64);

	if (n == 0)
		return;
	std::printf("%s %p", name, code);
	for (int i = 2; i < n; i++)
		std::printf(" %p", frame[i]);
	std::printf("\n");
}

__attribute__((noinline)) static void by_malloc(const char *name)
{
	keep[kept++] = malloc(100);
	tell(name, reinterpret_cast<void *>(by_malloc));
}

__attribute__((noinline)) static void by_calloc(const char *name)
{
	keep[kept++] = calloc(10, 300);
	tell(name, reinterpret_cast<void *>(by_calloc));
}

__attribute__((noinline)) static void by_block(const char *name)
{
	keep[kept++] = malloc(200000);
	tell(name, reinterpret_cast<void *>(by_block));
}

__attribute__((noinline)) static void by_new(const char *name)
{
	keep[kept++] = new char[50];
	tell(name, reinterpret_cast<void *>(by_new));
}

/* realloc moves: the library's own copy lies between. */
__attribute__((noinline)) static void by_realloc(const char *name)
{
	keep[kept] = realloc(keep[0], 5000);
	keep[0] = keep[kept++];
	tell(name, reinterpret_cast<void *>(by_realloc));
}

__attribute__((noinline)) static int below(int depth, volatile char *outer,
					   void (*act)(const char *), const char *name)
{
	alignas(64) volatile char here[128];
	here[5] = outer[0];
	if (depth == 0)
		act(name);
	else
		below(depth - 1, here, act, name);
	return here[5];
}

static void *thread(void *)
{
	char c = 0;
	below(3, &c, by_malloc, "thread");
	below(2, &c, by_new, "thread-new");
	return nullptr;
}

static void on_signal(int)
{
	char c = 0;
	below(2, &c, by_calloc, "signal");
}

int main()
{
	char c = 0;
	pthread_t t;
	void *first[4];

	backtrace(first, 4);
	for (int round = 0; round < 50; round++) {
		int n = kept;
		by_malloc(round == 0 ? "main" : nullptr);
		if (round > 0)
			kept = n;
	}
	below(5, &c, by_calloc, "deep");
	below(1, &c, by_block, "block");
	below(1, &c, by_new, "new");
	below(1, &c, by_realloc, "realloc");
	pthread_create(&t, nullptr, thread, nullptr);
	pthread_join(t, nullptr);
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	void *lib = dlopen("libstacks_plugin.so", RTLD_NOW | RTLD_LOCAL);
	if (lib == nullptr)
		return 2;
	void *(*allocate)(size_t);
	*reinterpret_cast<void **>(&allocate) = dlsym(lib, "plugin_allocates");
	keep[kept++] = allocate(77);
	std::printf("plugin %p\n", reinterpret_cast<void *>(allocate));
	dlclose(lib);
	std::fflush(stdout);
	_exit(0);
}
