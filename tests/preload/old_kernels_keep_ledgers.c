/* SPDX-License-Identifier: MIT */
/*
 * Linux before 5.14 does not know MADV_POPULATE_WRITE (here a filter says so): the ledger is there all the
 * same, in a directory of its own and on a tmpfs that becomes full, where its program lives on.
 * Failure: "no ledger", or SIGBUS.
 */
#include "filter.h"
#include "sandbox.h"
#include <dirent.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static void be_old(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FILTER_LOW(2)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_POPULATE_WRITE, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, FILTER_ERROR(EINVAL)),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(*code), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		probe_skip("no filter can be set: %s", strerror(errno));
}

/* What the ledger has not got yet it will not get. */
static void fill_up(void)
{
	static char page[65536];
	int fd = open("small/filler", O_WRONLY | O_CREAT, 0600);

	probe_require(fd >= 0, "small/filler: %s", strerror(errno));
	for (size_t bytes = sizeof(page); bytes > 0; bytes /= 2)
		while (write(fd, page, bytes) == (ssize_t)bytes)
			;
	close(fd);
}

static void use(bool fill)
{
	enum { BLOCKS = 200000 };
	static void *block[BLOCKS];
	uint64_t seed = 1;

	probe_require(madvise(block, 4096, MADV_POPULATE_WRITE) != 0, "the filter does nothing");
	for (size_t i = 0; i < BLOCKS; i++) {
		if (fill && i == 1000)
			fill_up();
		block[i] = malloc(16 + probe_random(&seed) % 300);
		probe_require(block[i] != NULL, "malloc is NULL");
	}
	probe_visit_allocator(seed);
	for (size_t i = 0; i < BLOCKS; i += 2)
		free(block[i]);
	pid_t pid = fork();
	if (pid == 0) {
		probe_visit_allocator(seed);
		exit(0);
	}
	probe_child_ok(pid, "fork");
}

static size_t bytes_of(pid_t pid, const char *folder)
{
	char path[600], start[32];
	DIR *dir = opendir(folder);
	size_t bytes = 0;
	struct stat st;

	snprintf(start, sizeof(start), "%d-", (int)pid);
	for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		if (strncmp(e->d_name, start, strlen(start)) == 0 && stat(path, &st) == 0)
			bytes += (size_t)st.st_blocks * 512;
	}
	if (dir != NULL)
		closedir(dir);
	return bytes;
}

static pid_t start(char *self, const char *mode)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	if (mode[0] == 'f') {
		sandbox_enter();
		if (mount("tmpfs", "small", "tmpfs", 0, "size=4m") != 0)
			probe_skip("no tmpfs can be mounted: %s", strerror(errno));
		setenv("TIERMALLOC_DIR", "small/ledgers", 1);
	}
	be_old();
	execl(self, self, mode, (char *)NULL);
	_exit(127);
}

int main(int argc, char **argv)
{
	pid_t pid;

	probe_limit();
	if (argc > 1) {
		use(argv[1][0] == 'f');
		return 0;
	}
	probe_require(mkdir("small", 0700) == 0, "small: %s", strerror(errno));
	setenv("TIERMALLOC_DIR", "ledgers", 1);
	pid = start(argv[0], "plain");
	probe_child_ok(pid, "plain");
	probe_require(bytes_of(pid, "ledgers") > 600000, "its ledger has %zu bytes",
		      bytes_of(pid, "ledgers"));
	probe_child_ok(start(argv[0], "full"), "full");
	return 0;
}
