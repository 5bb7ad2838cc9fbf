/* SPDX-License-Identifier: MIT */
/* When a mapped model file is dropped, with plain values; and which mappings are seen as such files. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "policies/source.h"
#include "shim/os/maps.h"

#define MIB ((uint64_t)1 << 20)

static struct tm_source_file source;
static struct tm_source_view view = {
	.resident = 1024 * MIB, .sources = 1024 * MIB, .allocated = 900 * MIB, .worked_ms = 5000};

/* The program works for a while, and so much is resident then. */
static enum tm_source_action later(uint64_t resident_mib)
{
	view.worked_ms += TM_SOURCE_WORK_MS + 1;
	view.resident = resident_mib * MIB;
	return tm_source_decide(&source, &view);
}

static void sample(void)
{
	cr_assert_eq(tm_source_decide(&source, &view), TM_SOURCE_NOTHING);
	cr_assert_eq(later(1024), TM_SOURCE_DROP_SAMPLE);
	tm_source_dropped(&source, 960 * MIB);
}

Test(source, all_goes_once_the_sample_stayed_away)
{
	sample();
	cr_assert_eq(later(964), TM_SOURCE_DROP_ALL);
	tm_source_dropped(&source, 0);
	cr_assert(!tm_source_is_done(&source));
	cr_assert_eq(later(1), TM_SOURCE_NOTHING);
	cr_assert_eq(source.state, TM_SOURCE_GONE);
	cr_assert(tm_source_is_done(&source));
	cr_assert_eq(later(1024), TM_SOURCE_NOTHING);
}

Test(source, what_is_read_again_is_left_alone)
{
	sample();
	cr_assert_eq(later(1020), TM_SOURCE_NOTHING);
	cr_assert_eq(source.state, TM_SOURCE_READ);
	cr_assert_eq(later(500), TM_SOURCE_NOTHING);
}

Test(source, a_late_return_ends_it_too)
{
	sample();
	cr_assert_eq(later(960), TM_SOURCE_DROP_ALL);
	tm_source_dropped(&source, 0);
	cr_assert_eq(later(400), TM_SOURCE_NOTHING);
	cr_assert_eq(source.state, TM_SOURCE_READ);
}

Test(source, idle_time_says_nothing)
{
	sample();
	for (int i = 0; i < 1000; i++)
		cr_assert_eq(tm_source_decide(&source, &view), TM_SOURCE_NOTHING);
	view.worked_ms += TM_SOURCE_WORK_MS - 1;
	cr_assert_eq(tm_source_decide(&source, &view), TM_SOURCE_NOTHING);
	view.worked_ms += 1;
	cr_assert_eq(tm_source_decide(&source, &view), TM_SOURCE_NOTHING, "it came back");
}

Test(source, nothing_goes_before_the_bytes_are_elsewhere)
{
	view.allocated = 500 * MIB;
	tm_source_decide(&source, &view);
	for (int i = 0; i < 10; i++)
		cr_assert_eq(later(1024), TM_SOURCE_NOTHING);
	cr_assert(!tm_source_is_done(&source));
	view.allocated = 512 * MIB;
	cr_assert_eq(later(1024), TM_SOURCE_DROP_SAMPLE);
}

Test(source, what_cannot_be_dropped_is_not_tried_again)
{
	tm_source_decide(&source, &view);
	cr_assert_eq(later(1024), TM_SOURCE_DROP_SAMPLE);
	tm_source_dropped(&source, 1024 * MIB);
	cr_assert(tm_source_is_done(&source));
}

/* --- mappings --------------------------------------------------------------------------------- */

struct looked {
	const void *at;
	bool seen;
	uint64_t resident;
	char path[256];
};

static void see(const struct tm_maps_file *file, void *arg)
{
	struct looked *l = arg;

	if ((const void *)file->start != l->at)
		return;
	l->seen = true;
	l->resident = file->resident_bytes;
	snprintf(l->path, sizeof(l->path), "%.*s", (int)file->path.len, file->path.at);
}

static bool is_seen(const void *at, struct looked *ret)
{
	*ret = (struct looked){.at = at};
	cr_assert_eq(tm_maps_files(MIB, see, ret), 0);
	return ret->seen;
}

Test(source, mappings_that_are_only_read_are_seen)
{
	char name[] = "sourceXXXXXX", library[] = "libsource.so.1";
	int fd = mkstemp(name), lib = open(library, O_RDWR | O_CREAT, 0600);
	struct looked l;
	char *p, *writable, *own, *code;
	int sum = 0;

	cr_assert_eq(ftruncate(fd, (off_t)(4 * MIB)), 0);
	cr_assert_eq(ftruncate(lib, (off_t)(4 * MIB)), 0);
	p = mmap(NULL, 4 * MIB, PROT_READ, MAP_SHARED, fd, 0);
	cr_assert(is_seen(p, &l));
	for (size_t i = 0; i < 4 * MIB; i += 4096)
		sum += p[i];
	cr_assert_eq(sum, 0);
	cr_assert(is_seen(p, &l));
	cr_assert_eq(l.resident, 4 * MIB);
	cr_assert(strstr(l.path, name) != NULL, "%s", l.path);

	writable = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert(!is_seen(writable, &l));
	own = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	own[0] = 1;
	mprotect(own, 4 * MIB, PROT_READ);
	cr_assert(!is_seen(own, &l), "pages of its own");
	code = mmap(NULL, 4 * MIB, PROT_READ, MAP_PRIVATE, lib, 0);
	cr_assert(!is_seen(code, &l), "a library");
	cr_assert(!is_seen(mmap(NULL, 4 * MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), &l));
	/* by the system call: a sanitizer's own mlock locks nothing */
	if (syscall(SYS_mlock, p, 4096) == 0) {
		cr_assert(!is_seen(p, &l), "locked");
		syscall(SYS_munlock, p, 4096);
	}
	unlink(name);
	unlink(library);
}
