/* SPDX-License-Identifier: MIT */
/*
 * H93: a program puts something else in the place of its block's pages, by mmap, mremap, shmat or
 * munmap, called or by number, and frees the block so. Above 128 KiB that works with the C library, which
 * unmaps such blocks. The next owners get plain memory of their own: not the file, not what the other
 * mapping's users see, and zero from calloc. The same for advice on a block's last page alone.
 * Failure: a changed file, a crash, memory shared with a child, dirty calloc.
 */
#include "probe.h"
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>

enum how {
	SHARED_FILE,
	READ_ONLY,
	BY_NUMBER,
	HOLE,
	HOLE_BY_NUMBER,
	MOVED_AWAY,
	MOVED_IN,
	SEGMENT,
	WAYS
};
static const char *const name[] = {
	"mmap of a file",      "mmap to read", "syscall(SYS_mmap)", "munmap",
	"syscall(SYS_munmap)", "mremap away",  "mremap in",         "shmat"};

enum { OWNERS = 24, MARK = 0x11 };

static void replace(enum how how, unsigned char *p, size_t bytes, int file)
{
	void *got = p;
	int id;

	switch (how) {
	case SHARED_FILE:
		got = mmap(p, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
		break;
	case READ_ONLY: got = mmap(p, bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0); break;
	case BY_NUMBER:
		syscall(SYS_mmap, p, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
			0);
		break;
	case HOLE: munmap(p, bytes); break;
	case HOLE_BY_NUMBER: syscall(SYS_munmap, p, bytes); break;
	case MOVED_AWAY:
		got = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		got = mremap(p, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, got);
		break;
	case MOVED_IN:
		got = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
		got = mremap(got, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, p);
		break;
	case SEGMENT:
		id = shmget(IPC_PRIVATE, bytes, IPC_CREAT | 0600);
		if (id < 0)
			break;
		got = shmat(id, p, SHM_REMAP);
		shmctl(id, IPC_RMID, NULL);
		break;
	default: break;
	}
	probe_require(got != MAP_FAILED, "%s of %zu bytes: %s", name[how], bytes, strerror(errno));
}

static void next_owners(enum how how, size_t bytes)
{
	unsigned char *p[OWNERS];
	static const size_t part[] = {1, 1, 3, 16};

	for (size_t i = 0; i < OWNERS; i++) {
		size_t n = bytes / part[i % 4];

		p[i] = i % 2 == 0 ? calloc(1, n) : malloc(n);
		probe_require(p[i] != NULL, "no memory");
		for (size_t at = 0; i % 2 == 0 && at < n; at += 512)
			probe_require(p[i][at] == 0, "after %s of %zu: dirty calloc", name[how],
				      bytes);
		memset(p[i], (int)(0x30 + i), n);
	}
	pid_t pid = fork();
	if (pid == 0) {
		for (size_t i = 0; i < OWNERS; i++)
			memset(p[i], 0x7f, bytes / part[i % 4]);
		_exit(0);
	}
	probe_require(probe_wait(pid) == 0, "after %s: the child failed", name[how]);
	for (size_t i = 0; i < OWNERS; i++) {
		probe_require(p[i][0] == 0x30 + i, "after %s of %zu: shared with a child",
			      name[how], bytes);
		free(p[i]);
	}
}

static void end_with_block(enum how how, size_t bytes)
{
	int file = memfd_create("file", 0);
	unsigned char *p = NULL, *seen;

	probe_require(file >= 0 && ftruncate(file, (off_t)bytes) == 0, "no file");
	seen = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	memset(seen, MARK, bytes);
	probe_require(posix_memalign((void **)&p, 4096, bytes) == 0, "no memory");
	memset(p, 1, bytes);
	replace(how, p, bytes, file);
	free(p);
	next_owners(how, bytes);
	for (size_t at = 0; at < bytes; at += 512)
		probe_require(seen[at] == MARK, "after %s of %zu: the file changed", name[how],
			      bytes);
	munmap(seen, bytes);
	close(file);
}

/* A free looks at where its block starts. */
static void last_pages(size_t bytes)
{
	enum { BLOCKS = 64 };
	unsigned char *p[BLOCKS];

	for (size_t i = 0; i < BLOCKS; i++) {
		p[i] = malloc(bytes);
		probe_require(p[i] != NULL, "no memory");
		uintptr_t page = (((uintptr_t)p[i] + bytes) & ~(uintptr_t)4095) - 4096;
		if (page >= (uintptr_t)p[i])
			madvise((void *)page, 4096, MADV_WIPEONFORK);
	}
	for (size_t i = 0; i < BLOCKS; i++)
		free(p[i]);
	for (size_t i = 0; i < BLOCKS; i++) {
		p[i] = malloc(bytes);
		memset(p[i], 0x5a, bytes);
	}
	pid_t pid = fork();
	if (pid == 0) {
		for (size_t i = 0; i < BLOCKS; i++)
			for (size_t at = 0; at < bytes; at++)
				if (p[i][at] != 0x5a)
					_exit(1);
		_exit(0);
	}
	probe_require(probe_wait(pid) == 0, "last pages of %zu bytes are wiped in a child", bytes);
	for (size_t i = 0; i < BLOCKS; i++)
		free(p[i]);
}

int main(void)
{
	static const size_t sizes[] = {192 * KIB, MIB, 8 * MIB};

	probe_limit();
	for (enum how how = 0; how < WAYS; how++)
		for (size_t i = 0; i < 3; i++)
			end_with_block(how, sizes[i]);
	for (size_t bytes = 9000; bytes < 70000; bytes += 4099)
		last_pages(bytes);
	return 0;
}
