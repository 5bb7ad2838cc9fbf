/* SPDX-License-Identifier: MIT */
/*
 * Planted leaks and innocents: leaks_subject KIND [N]. Each kind has a line of its own that leaks,
 * marked "leaks: KIND", which the tests look up; those without are innocent. "plain" runs N rounds and
 * ends; the others run until they are ended.
 */
/* run: none */
/* build: -O1 -g */
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <list>
#include <map>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <ucontext.h>
#include <unistd.h>
#include <unordered_map>
#include <vector>

#define NI __attribute__((noinline))

static unsigned long state = 88172645463325252ul;
static unsigned rnd()
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state >> 16);
}

static void *volatile sink;
static void **kept;
static size_t kept_n;

/* Reachable: in a table that only grows; its own growth is no allocation. */
static void keep(void *p)
{
	if (kept == nullptr)
		kept = (void **)mmap(nullptr, 1 << 26, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	kept[kept_n++ % ((1 << 26) / sizeof(void *))] = p;
}

static void fill(void *p, size_t bytes)
{
	memset(p, 1, bytes);
	sink = p;
}

/* What every server does besides: many short-lived objects. */
NI static void serve()
{
	std::vector<std::string> words;
	for (int i = 0; i < 8; i++)
		words.emplace_back(20 + rnd() % 60, 'w');
	std::map<int, int> scores;
	for (int i = 0; i < 8; i++)
		scores[(int)(rnd() % 64)] = i;
	sink = &words[0];
	char *body = (char *)malloc(70000 + rnd() % 100000);
	fill(body, 100);
	free(body);
}

/* --- leaks -------------------------------------------------------------------------------------- */

NI static void keep_plain()
{
	char *p = (char *)malloc(100); /* leaks: plain */
	fill(p, 100);
	keep(p);
}

NI static void lose()
{
	char *p = (char *)malloc(64 + rnd() % 128); /* leaks: unreachable */
	fill(p, 64);
	sink = nullptr;
}

static std::map<unsigned, std::string *> *prefixes = new std::map<unsigned, std::string *>;
NI static void remember()
{
	(*prefixes)[(unsigned)prefixes->size()] = new std::string(200, 'x'); /* leaks: reachable */
}

struct entry {
	entry *next;
	char text[184];
};
static entry *volatile newest;
NI static void padding()
{
	void *p = malloc(70000 + rnd() % 60000);

	memset(p, 0, 70000);
	keep(p);
}

/* In the last words of large blocks, which begin at any page, among others that hold nothing. */
NI static void keep_behind()
{
	const size_t words = 100000 / sizeof(void *), last = 200;
	static void **table;
	static size_t n = 0;

	if (n % last == 0) {
		table = (void **)malloc(words * sizeof(void *));
		memset(table, 0, words * sizeof(void *));
		keep(table);
		padding();
	}
	table[words - last + n++ % last] = calloc(1, 40);
}

NI static void push()
{
	newest = new entry{newest, ""};
}

NI static void token()
{
	char *p = new char[1024]; /* leaks: token */
	fill(p, 1024);
	keep(p);
}

struct scratch {
	std::vector<char *> left;
	char buffer[400];
};
static thread_local scratch *mine;
NI static void thread_request()
{
	if (mine == nullptr)
		mine = new scratch; /* leaks: tls */
	serve();
}

struct registry {
	std::vector<char *> names;
	~registry()
	{
		names.clear(); /* the pointers go, what they point to stays */
	}
	NI void add()
	{
		char *p = (char *)malloc(48 + rnd() % 16); /* leaks: static */
		fill(p, 48);
		names.push_back(p);
	}
};
static registry names;

static void load_and_unload()
{
	void *h = dlopen("libleaks_plugin.so", RTLD_NOW);
	if (h == nullptr)
		abort();
	void *f = dlsym(h, "plugin_request");
	void (*request)();
	memcpy(&request, &f, sizeof(f));
	request();
	dlclose(h);
}

static ucontext_t main_context, fiber_context;
NI static void fiber_allocate()
{
	char *p = (char *)malloc(300); /* leaks: coroutine */
	fill(p, 300);
	keep(p);
}
static void fiber()
{
	for (;;) {
		fiber_allocate();
		swapcontext(&fiber_context, &main_context);
	}
}
static void resume()
{
	static char *stack;
	if (stack == nullptr) {
		stack = (char *)mmap(nullptr, 1 << 18, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		getcontext(&fiber_context);
		fiber_context.uc_stack.ss_sp = stack;
		fiber_context.uc_stack.ss_size = 1 << 18;
		makecontext(&fiber_context, fiber, 0);
	}
	swapcontext(&main_context, &fiber_context);
}

NI static void parse_request()
{
	char *p = (char *)malloc(500); /* leaks: exception */
	fill(p, 500);
	sink = nullptr;
	if (rnd() % 2)
		throw std::runtime_error("bad request");
	free(p);
}
NI static void exception_path()
{
	try {
		parse_request();
	} catch (const std::exception &) {
	}
}

/* Blocks of a page and more, as a runtime pins for a device. */
NI static void pin()
{
	char *p = (char *)aligned_alloc(4096, 8192); /* leaks: pinned */
	fill(p, 8192);
	mlock(p, 4096);
	keep(p);
}

NI static void rare()
{
	char *p = (char *)malloc(4000);
	fill(p, 4000);
	free(p);
	if (rnd() % 1000 == 0) {
		p = (char *)malloc(4000); /* leaks: rare */
		fill(p, 4000);
		keep(p);
	}
}

/* --- innocents ---------------------------------------------------------------------------------- */

static double now()
{
	timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
static double begun;

NI static void diurnal()
{
	static std::list<std::string> sessions;
	size_t want = (size_t)(400 + 300 * __builtin_sin((now() - begun) * 3));
	while (sessions.size() < want)
		sessions.emplace_back(300, 's');
	sessions.pop_front();
}

NI static void warm_up()
{
	static std::unordered_map<unsigned, std::string> cache;
	for (int i = 0; i < 20; i++) {
		unsigned key = rnd() % 2000;
		if (cache.find(key) == cache.end())
			cache.emplace(key, std::string(100, 'c'));
	}
}

NI static void lru()
{
	static std::list<std::string> order;
	order.emplace_back(150, 'l');
	if (order.size() > 500)
		order.pop_front();
}

NI static void long_sessions()
{
	static std::multimap<double, std::string> sessions;
	double t = now();
	sessions.emplace(t - 0.4 * __builtin_log((rnd() % 10000 + 1) / 10001.0),
			 std::string(200, 'o'));
	sessions.erase(sessions.begin(), sessions.lower_bound(t));
}

NI static void ramp()
{
	static std::list<std::string> queue;
	for (double n = now() - begun; n > 0; n -= 1)
		queue.emplace_back(100, 'r');
	while (queue.size() > 40 * (now() - begun) + 5)
		queue.pop_front();
}

NI static void once()
{
	static std::vector<std::string> *vocabulary;
	if (vocabulary == nullptr) {
		vocabulary = new std::vector<std::string>;
		for (int i = 0; i < 20000; i++)
			vocabulary->emplace_back(30, 'v');
	}
}

NI static void doubling()
{
	static std::vector<unsigned> *log = new std::vector<unsigned>;
	for (int i = 0; i < 200; i++)
		log->push_back(rnd());
}

NI static void ring()
{
	static char *slot[256];
	char **place = &slot[rnd() % 256];
	free(*place);
	*place = (char *)malloc(50 + rnd() % 2000);
	fill(*place, 50);
}

struct kind {
	const char *name;
	void (*round)();
};
static const kind kinds[] = {
	{"plain", keep_plain},
	{"unreachable", lose},
	{"reachable", remember},
	{"list", push},
	{"behind", keep_behind},
	{"token",
	 [] {
		 for (int i = 0; i < 3; i++)
			 token();
	 }},
	{"tls", [] { std::thread(thread_request).join(); }},
	{"static", [] { names.add(); }},
	{"dlclosed", load_and_unload},
	{"coroutine", resume},
	{"exception", exception_path},
	{"pinned", pin},
	{"rare",
	 [] {
		 for (int i = 0; i < 100; i++)
			 rare();
	 }},
	{"child", keep_plain},
	{"diurnal", diurnal},
	{"warm-up", warm_up},
	{"lru", lru},
	{"sessions", long_sessions},
	{"ramp", ramp},
	{"once", once},
	{"doubling", doubling},
	{"ring", ring},
	{"steady", serve},
};

int main(int argc, char **argv)
{
	const kind *k = kinds;
	long rounds = argc > 2 ? atol(argv[2]) : 1000000000;

	while (argc > 1 && k < kinds + sizeof(kinds) / sizeof(*kinds) &&
	       strcmp(k->name, argv[1]) != 0)
		k++;
	if (argc < 2 || k == kinds + sizeof(kinds) / sizeof(*kinds))
		return 2;
	if (getenv("SEED"))
		state += (unsigned long)atol(getenv("SEED")) * 0x9e3779b97f4a7c15ul;
	/* The leak is in a forked child; the parent only waits. */
	if (strcmp(k->name, "child") == 0 && fork() != 0)
		return wait(nullptr) < 0;
	begun = now();
	for (long n = 0; n < rounds; n++) {
		k->round();
		serve();
		if (argc <= 2)
			usleep(1500);
	}
	return 0;
}
