/* SPDX-License-Identifier: MIT */
/*
 * H69: no /proc, no /dev, no temporary directory: the program is started in a root that holds only
 * itself and its libraries, moves into an empty root in the middle of its life, or is started on
 * a read-only file system with a report file that cannot be written. It allocates, starts threads,
 * forks and gives back as ever; the report that was asked for goes to stderr.
 * Failure: abort, a hang, or silence where a report was asked for.
 */
#include "sandbox.h"
#include <malloc.h>
#include <pthread.h>

static void *thread(void *arg)
{
	probe_visit_allocator(2);
	return arg;
}

static void work(int statm)
{
	static unsigned char *block[100];
	char text[128] = "";
	long pages = 0;
	pthread_t t;

	probe_limit();
	for (size_t i = 0; i < 100; i++) {
		block[i] = malloc(2 * MIB);
		probe_require(block[i] != NULL, "malloc is NULL");
		memset(block[i], 1, 2 * MIB);
	}
	probe_require(pthread_create(&t, NULL, thread, NULL) == 0, "no thread");
	pthread_join(t, NULL);
	pid_t pid = fork();
	if (pid == 0) {
		probe_visit_allocator(3);
		_exit(0);
	}
	probe_child_ok(pid, "fork");
	for (size_t i = 0; i < 100; i++)
		free(block[i]);
	probe_sleep_ms(1500);
	malloc_trim(0);
	if (statm >= 0 && pread(statm, text, sizeof(text) - 1, 0) > 0)
		sscanf(text, "%*d %ld", &pages);
	probe_require(pages * 4096 < 60L * (long)MIB, "%ld MiB stay", pages >> 8);
}

static void small_root(char *self)
{
	char root[] = "root-XXXXXX", exe[4096] = "";

	probe_require(mkdtemp(root) != NULL, "no directory");
	probe_require(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0, "no /proc/self/exe");
	sandbox_copy_self(root);
	if (chroot(root) != 0 || chdir("/") != 0)
		probe_skip("chroot is not allowed");
	execl(exe, self, "work", (char *)NULL);
	probe_end(1, "cannot start in a small root: %s", strerror(errno));
}

static void empty_root(void)
{
	char root[] = "empty-XXXXXX";
	int statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

	probe_visit_allocator(1);
	probe_require(mkdtemp(root) != NULL, "no directory");
	if (chroot(root) != 0 || chdir("/") != 0)
		probe_skip("chroot is not allowed");
	work(statm);
	exit(0);
}

static void read_only(char *self)
{
	int said = open("said", O_RDWR | O_CREAT | O_TRUNC, 0600);

	sandbox_enter();
	umount2("/dev/shm", MNT_DETACH);
	if (mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) != 0)
		probe_skip("the root cannot be made read-only: %s", strerror(errno));
	setenv("TIERMALLOC_REPORT", "exit", 1);
	setenv("TIERMALLOC_REPORT_FILE", "/tmp/not-there/%p", 1);
	dup2(said, STDERR_FILENO);
	execl("/proc/self/exe", self, "work", (char *)NULL);
	_exit(127);
}

static void run(void (*mode)(char *), char *self, const char *what)
{
	pid_t pid = fork();

	if (pid == 0)
		mode(self);
	probe_child_ok(pid, what);
}

static void run_empty(char *self)
{
	(void)self;
	empty_root();
}

int main(int argc, char **argv)
{
	static char said[8192];

	if (argc > 1) {
		work(-1);
		return 0;
	}
	run(small_root, argv[0], "small root");
	run(run_empty, argv[0], "empty root");
	run(read_only, argv[0], "read-only root");
	probe_read("said", said, sizeof(said));
	probe_require(strstr(said, "tiermalloc") != NULL, "no report on stderr but '%s'", said);
	return 0;
}
