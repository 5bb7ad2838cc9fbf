/* SPDX-License-Identifier: MIT */
/*
 * A preload that interposes the libc calls an allocator makes. Each looks its original up by
 * dlsym(RTLD_NEXT) at its first call (with failing lookups beside it, whose error text is
 * malloc-ed), under a lock that is not recursive, and allocates on every call.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* it has two opinions of these lines */
/* clang-format off */
#define SHIM_CALLS                                                                                 \
	X(getenv)                                                                                  \
	X(open)                                                                                    \
	X(open64)                                                                                  \
	X(openat)                                                                                  \
	X(read)                                                                                    \
	X(close) X(mmap) X(mmap64) X(munmap) X(madvise) X(mprotect) X(mremap) X(dl_iterate_phdr)   \
		X(clock_gettime) X(pthread_create) X(sysconf) X(getrlimit) X(sched_getaffinity)    \
			X(getrandom) X(secure_getenv)
/* clang-format on */

enum call {
#define X(name) call_##name,
	SHIM_CALLS
#undef X
		calls
};

static const char *const names[] = {
#define X(name) #name,
	SHIM_CALLS
#undef X
};

static void *originals[calls];
static int counts[calls];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int depth __attribute__((tls_model("initial-exec")));

int shim_count(const char *name);

int shim_count(const char *name)
{
	for (int i = 0; i < calls; i++)
		if (strcmp(names[i], name) == 0)
			return counts[i];
	return -1;
}

/* A second entry while we resolve waits on our lock for ever, as real shims do. */
static void *original(enum call which)
{
	__atomic_fetch_add(&counts[which], 1, __ATOMIC_RELAXED);
	if (!__atomic_load_n(&originals[which], __ATOMIC_ACQUIRE)) {
		pthread_mutex_lock(&lock);
		dlsym(RTLD_NEXT, "shim_no_such_name");
		void *found = dlsym(RTLD_NEXT, names[which]);
		dlsym(RTLD_DEFAULT, "shim_no_other_name");
		dlerror();
		__atomic_store_n(&originals[which], found, __ATOMIC_RELEASE);
		pthread_mutex_unlock(&lock);
	}
	if (depth++ == 0) {
		char *volatile p = malloc(200);
		memset(p, 1, 200);
		free(p);
	}
	depth--;
	return originals[which];
}

#define CALL(name, type)                                                                           \
	type function;                                                                             \
	void *found = original(call_##name);                                                       \
	memcpy(&function, &found, sizeof(found))

typedef char *(*getenv_type)(const char *);
char *getenv(const char *name)
{
	CALL(getenv, getenv_type);
	return function(name);
}

char *secure_getenv(const char *name)
{
	CALL(secure_getenv, getenv_type);
	return function(name);
}

typedef int (*open_type)(const char *, int, ...);
int open(const char *path, int flags, ...)
{
	va_list args;
	va_start(args, flags);
	mode_t mode = va_arg(args, mode_t);
	va_end(args);
	CALL(open, open_type);
	return function(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	va_list args;
	va_start(args, flags);
	mode_t mode = va_arg(args, mode_t);
	va_end(args);
	CALL(open64, open_type);
	return function(path, flags, mode);
}

typedef int (*openat_type)(int, const char *, int, ...);
int openat(int fd, const char *path, int flags, ...)
{
	va_list args;
	va_start(args, flags);
	mode_t mode = va_arg(args, mode_t);
	va_end(args);
	CALL(openat, openat_type);
	return function(fd, path, flags, mode);
}

typedef ssize_t (*read_type)(int, void *, size_t);
ssize_t read(int fd, void *to, size_t bytes)
{
	CALL(read, read_type);
	return function(fd, to, bytes);
}

typedef int (*close_type)(int);
int close(int fd)
{
	CALL(close, close_type);
	return function(fd);
}

typedef void *(*mmap_type)(void *, size_t, int, int, int, off_t);
void *mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	CALL(mmap, mmap_type);
	return function(at, bytes, prot, flags, fd, offset);
}

void *mmap64(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	CALL(mmap64, mmap_type);
	return function(at, bytes, prot, flags, fd, offset);
}

typedef int (*munmap_type)(void *, size_t);
int munmap(void *at, size_t bytes)
{
	CALL(munmap, munmap_type);
	return function(at, bytes);
}

typedef int (*range_type)(void *, size_t, int);
int madvise(void *at, size_t bytes, int advice)
{
	CALL(madvise, range_type);
	return function(at, bytes, advice);
}

int mprotect(void *at, size_t bytes, int prot)
{
	CALL(mprotect, range_type);
	return function(at, bytes, prot);
}

typedef void *(*mremap_type)(void *, size_t, size_t, int, ...);
void *mremap(void *at, size_t old_bytes, size_t new_bytes, int flags, ...)
{
	va_list args;
	va_start(args, flags);
	void *to = va_arg(args, void *);
	va_end(args);
	CALL(mremap, mremap_type);
	return function(at, old_bytes, new_bytes, flags, to);
}

typedef int (*iterate_type)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
int dl_iterate_phdr(int (*each)(struct dl_phdr_info *, size_t, void *), void *data)
{
	CALL(dl_iterate_phdr, iterate_type);
	return function(each, data);
}

typedef int (*clock_type)(clockid_t, struct timespec *);
int clock_gettime(clockid_t clock, struct timespec *now)
{
	CALL(clock_gettime, clock_type);
	return function(clock, now);
}

typedef int (*create_type)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *data)
{
	CALL(pthread_create, create_type);
	return function(thread, attr, run, data);
}

typedef long (*sysconf_type)(int);
long sysconf(int name)
{
	CALL(sysconf, sysconf_type);
	return function(name);
}

typedef int (*getrlimit_type)(__rlimit_resource_t, struct rlimit *);
int getrlimit(__rlimit_resource_t which, struct rlimit *limit)
{
	CALL(getrlimit, getrlimit_type);
	return function(which, limit);
}

typedef int (*affinity_type)(pid_t, size_t, cpu_set_t *);
int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set)
{
	CALL(sched_getaffinity, affinity_type);
	return function(pid, bytes, set);
}

typedef ssize_t (*random_type)(void *, size_t, unsigned);
ssize_t getrandom(void *to, size_t bytes, unsigned flags)
{
	CALL(getrandom, random_type);
	return function(to, bytes, flags);
}
