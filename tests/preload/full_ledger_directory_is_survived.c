/* SPDX-License-Identifier: MIT */
/*
 * The place of the ledgers is a tmpfs of 64 KiB, one that fills up while the program runs, holds garbage
 * where a ledger would be, is somebody else's, or is missing.
 * The program runs with all its memory; threads and forks work.
 * Failure: SIGBUS on the first store into a page that tmpfs cannot give, or a refused start.
 */
/* env: TIERMALLOC_LEDGER=on */
#include "sandbox.h"
#include <pthread.h>

enum { BLOCKS = 200000 };
static const char place[] = "/dev/shm";

static void *use(void *arg)
{
	unsigned char **block = malloc(BLOCKS * sizeof(*block));
	uint64_t seed = (uintptr_t)arg + 1;

	for (size_t i = 0; i < BLOCKS; i++) {
		block[i] = malloc(16 + probe_random(&seed) % 300);
		probe_require(block[i] != NULL, "malloc is NULL");
		block[i][0] = 1;
	}
	for (size_t i = 0; i < BLOCKS; i++)
		free(block[i]);
	free(block);
	probe_visit_allocator(seed);
	return NULL;
}

static void fill_up(void)
{
	static char page[65536];
	int fd = open("/dev/shm/filler", O_WRONLY | O_CREAT, 0600);

	while (fd >= 0 && write(fd, page, sizeof(page)) > 0)
		;
	close(fd);
}

static void work(bool fill)
{
	pthread_t t[4];

	probe_limit();
	use(NULL);
	if (fill)
		fill_up();
	for (uintptr_t i = 0; i < 4; i++)
		probe_require(pthread_create(&t[i], NULL, use, (void *)i) == 0, "no thread");
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	pid_t pid = fork();
	if (pid == 0) {
		use(NULL);
		exit(0);
	}
	probe_child_ok(pid, "fork");
}

static void prepare(const char *mode)
{
	char path[128];

	sandbox_enter();
	if (mount("tmpfs", place, "tmpfs", 0, mode[0] == 't' ? "size=64k" : "size=4m") != 0)
		probe_skip("no tmpfs can be mounted: %s", strerror(errno));
	snprintf(path, sizeof(path), "%s/tiermalloc-%d", place, (int)geteuid());
	if (mode[0] == 'g') { /* garbage */
		mkdir(path, 0700);
		setenv("TIERMALLOC_DIR", path, 1);
		for (int i = 0; i < 50; i++) {
			snprintf(path, sizeof(path), "%s/tiermalloc-%d/%d-%d.tm", place,
				 (int)geteuid(), (int)getpid() + i, i);
			int fd = open(path, O_WRONLY | O_CREAT, 0600);
			ssize_t n = write(fd, "not a ledger at all", (size_t)(i % 20));
			(void)n;
			close(fd);
		}
	} else if (mode[0] == 'o') { /* open to everybody */
		mkdir(path, 0777);
		chmod(path, 0777);
	} else if (mode[0] == 'l') { /* a link that leads nowhere */
		probe_require(symlink("/nowhere", path) == 0, "symlink");
	} else if (mode[0] == 'm') { /* missing */
		setenv("TIERMALLOC_DIR", "/nowhere/at/all", 1);
	}
}

int main(int argc, char **argv)
{
	static const char *const modes[] = {"tiny", "filling", "garbage",
					    "open", "link",    "missing"};
	char mode[32];

	if (argc > 1) {
		work(argv[1][0] == 'f');
		return 0;
	}
	for (int i = 0; i < 6; i++) {
		snprintf(mode, sizeof(mode), "%s", modes[i]);
		pid_t pid = fork();
		if (pid == 0) {
			prepare(mode);
			execl("/proc/self/exe", argv[0], mode, (char *)NULL);
			_exit(127);
		}
		probe_child_ok(pid, mode);
	}
	return 0;
}
