/* SPDX-License-Identifier: MIT */
/*
 * H55, log 19, H36: every n-th mmap, mprotect and mremap fails with ENOMEM, every n-th munmap with
 * ENOMEM and madvise with EINVAL, while somebody else maps memory all the time. The allocator
 * answers NULL with ENOMEM or finds another way; blocks keep their content, calloc is zero, the
 * neighbour's pages stay the neighbour's; when calls succeed again, so does every request.
 * Failure: a crash, a block that overlaps the neighbour's pages, stale bytes from calloc.
 */
#include "filter.h"
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/ioctl.h>

enum { LIVE = 300, STEPS = 12000, NEIGHBOURS = 64 };
static _Atomic int listener = -1;
static _Atomic unsigned every; /* 0: nothing fails */
static _Atomic unsigned failed;

/* Not filtered itself: it was started before the filter was. */
static void *supervise(void *arg)
{
	unsigned count = 0;

	while (listener < 0)
		probe_sleep_ms(1);
	for (;;) {
		struct seccomp_notif call;
		struct seccomp_notif_resp answer = {0};
		memset(&call, 0, sizeof(call));
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0)
			continue;
		answer.id = call.id;
		if (every != 0 && ++count % every == 0) {
			answer.error = call.data.nr == SYS_madvise ? -EINVAL : -ENOMEM;
			failed++;
		} else {
			answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		}
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	}
	return arg;
}

static struct block {
	unsigned char *at;
	size_t bytes;
} live[LIVE], neighbour[NEIGHBOURS];

/* Every block has at least 512 bytes: a pattern of 256 at either end tells whose it is. */
static void check(const struct block *b, uint64_t tag)
{
	probe_require(b->at == NULL || (probe_filled(b->at, 256, tag) &&
					probe_filled(b->at + b->bytes - 256, 256, tag + 1)),
		      "%zu bytes at %p were overwritten", b->bytes, (void *)b->at);
}

static void mark(struct block *b, uint64_t tag)
{
	if (b->at == NULL) {
		probe_require(errno == ENOMEM, "NULL with errno %d", errno);
		return;
	}
	probe_fill(b->at, 256, tag);
	probe_fill(b->at + b->bytes - 256, 256, tag + 1);
}

static void map_neighbour(size_t i)
{
	struct block *b = &neighbour[i];

	if (b->at != NULL) {
		probe_require(probe_filled(b->at, 4096, i) && b->at[b->bytes - 1] == 9,
			      "the neighbour's pages were overwritten");
		munmap(b->at, b->bytes);
	}
	b->bytes = (1 + i % 20) * 64 * KIB;
	b->at = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (b->at == MAP_FAILED) {
		b->at = NULL;
		return;
	}
	probe_fill(b->at, 4096, i);
	b->at[b->bytes - 1] = 9;
}

static size_t any_size(uint64_t *seed)
{
	unsigned kind = probe_random(seed) % 8;

	return 512 + (kind < 5   ? probe_random(seed) % 8000
		      : kind < 7 ? probe_random(seed) % 400000
				 : probe_random(seed) % (6 * MIB));
}

static void step(uint64_t *seed)
{
	size_t i = probe_random(seed) % LIVE, bytes = any_size(seed);
	struct block *b = &live[i];

	check(b, i);
	errno = 0;
	if (b->at != NULL && probe_random(seed) % 3 == 0) {
		unsigned char *p = realloc(b->at, bytes);
		if (p == NULL) {
			probe_require(errno == ENOMEM, "realloc: NULL with errno %d", errno);
			check(b, i);
			return;
		}
		probe_require(probe_filled(p, 256, i), "realloc lost the content");
		*b = (struct block){p, bytes};
	} else if (probe_random(seed) % 3 == 0) {
		free(b->at);
		*b = (struct block){calloc(1, bytes), bytes};
		probe_require(b->at == NULL || probe_zero(b->at, bytes), "calloc is not zero");
	} else {
		free(b->at);
		*b = (struct block){malloc(bytes), bytes};
	}
	mark(b, i);
}

int main(void)
{
	static const struct filter_rule rules[] = {
		{SYS_mmap, SECCOMP_RET_USER_NOTIF, 0, 0},
		{SYS_munmap, SECCOMP_RET_USER_NOTIF, 0, 0},
		{SYS_mprotect, SECCOMP_RET_USER_NOTIF, 0, 0},
		{SYS_mremap, SECCOMP_RET_USER_NOTIF, 0, 0},
		{SYS_madvise, SECCOMP_RET_USER_NOTIF, 0, 0},
	};
	static const unsigned rates[] = {3, 2, 7, 1, 4};
	uint64_t seed = 55;
	pthread_t t;

	probe_limit();
	probe_require(pthread_create(&t, NULL, supervise, NULL) == 0, "no thread");
	int fd = filter_install(rules, 5, SECCOMP_RET_ALLOW, SECCOMP_FILTER_FLAG_NEW_LISTENER);
	if (fd < 0)
		probe_skip("no seccomp listener: %s", strerror(errno));
	listener = fd;
	for (int i = 0; i < STEPS; i++) {
		if (i % (STEPS / 10) == 0)
			every = i / (STEPS / 10) % 2 ? rates[i / (STEPS / 10) / 2] : 0;
		step(&seed);
		if (i % 20 == 0)
			map_neighbour(probe_random(&seed) % NEIGHBOURS);
		if (i % 500 == 0)
			malloc_trim(0);
	}
	every = 0;
	probe_require(failed > 20, "only %u calls failed: nothing was tested", failed);
	for (size_t i = 0; i < LIVE; i++) {
		check(&live[i], i);
		free(live[i].at);
	}
	probe_visit_allocator(1);
	_exit(0);
}
