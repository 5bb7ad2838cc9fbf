/* SPDX-License-Identifier: MIT */
#include "tools/ledger/control.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/ledger_format.h"
#include "tools/ledger/ledger.h"

#define REFRESH_WAIT_MS 300u
#define SCAN_WAIT_MS 60000u
/* An idle process checks its ledger rarely; after this time it will not answer at all. */
#define SCAN_ANSWER_MS 3000u
/* Time between the two passes, for windows of a minute; scaled for shorter ones. */
#define PASSES_APART_MS 15000u
/* Waits go in steps: the process may end meanwhile. */
#define STEP_MS 20u
#define PAUSE_STEP_MS 200u

static struct tm_ledger_header *map_header(const char *path)
{
	struct stat st;
	void *p = MAP_FAILED;
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    (uint64_t)st.st_size == TM_LEDGER_BYTES)
		p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	return p == MAP_FAILED ? NULL : p;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void wait_on(uint32_t *word, uint32_t value, unsigned ms)
{
	const struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};

	syscall(SYS_futex, word, FUTEX_WAIT, value, &t, NULL, 0);
}

static bool has_ended(const struct tm_ledger_header *h)
{
	const struct tm_ledger look = {.header = *h};

	return !tm_ledger_runs(&look);
}

/* Asks and waits. 0: answered; -ESRCH: the process has ended; else not in time. */
static int ask(struct tm_ledger_header *h, enum tm_ledger_control what, unsigned wait_ms)
{
	uint64_t end = now_ms() + wait_ms;

	__atomic_store_n(&h->control, what, __ATOMIC_RELAXED);
	uint32_t seq = __atomic_add_fetch(&h->control_seq, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &h->control_seq, FUTEX_WAKE, 1, NULL, NULL, 0);
	for (;;) {
		uint32_t done = __atomic_load_n(&h->control_done, __ATOMIC_ACQUIRE);

		if ((int32_t)(done - seq) >= 0)
			return h->control_error;
		if (now_ms() >= end)
			return -ETIMEDOUT;
		if (has_ended(h))
			return -ESRCH;
		wait_on(&h->control_done, done, STEP_MS);
	}
}

static int scan_twice(struct tm_ledger_header *h)
{
	unsigned window = h->window_ms ? h->window_ms : 60000;
	unsigned apart = (unsigned)((uint64_t)PASSES_APART_MS * window / 60000);
	int rc = ask(h, TM_LEDGER_SCAN_STOP, SCAN_ANSWER_MS);

	if (apart > PASSES_APART_MS)
		apart = PASSES_APART_MS;
	if (rc != 0)
		return rc;
	if (isatty(2) && apart > 1000)
		fprintf(stderr, "tiermalloc: second pass in %u s\n", apart / 1000);
	for (unsigned slept = 0; slept < apart && !has_ended(h);) {
		unsigned step = apart - slept < PAUSE_STEP_MS ? apart - slept : PAUSE_STEP_MS;

		nanosleep(&(struct timespec){0, (long)step * 1000000}, NULL);
		slept += step;
	}
	rc = ask(h, TM_LEDGER_SCAN_STOP, SCAN_WAIT_MS);
	return rc == 0 ? TM_CONTROL_SCANNED : rc;
}

int tm_control_prepare(const char *path, bool scan)
{
	struct tm_ledger_header *h = map_header(path);
	int rc = TM_CONTROL_NOT_ASKED;

	if (h == NULL)
		return scan && errno == EACCES ? -EACCES : TM_CONTROL_NOT_ASKED;
	if (h->magic == TM_LEDGER_MAGIC && h->version == TM_LEDGER_VERSION && !has_ended(h)) {
		int fresh = ask(h, TM_LEDGER_REFRESH, REFRESH_WAIT_MS);

		if (scan)
			rc = fresh == 0 ? scan_twice(h) : fresh;
	}
	munmap(h, 4096);
	return rc;
}
