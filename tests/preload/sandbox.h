/* SPDX-License-Identifier: MIT */
/* sandbox: mount namespaces and small roots for the tests that take the file system away. */
#ifndef TESTS_PRELOAD_SANDBOX_H
#define TESTS_PRELOAD_SANDBOX_H

#include "probe.h"
#include <link.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

static inline void sandbox_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		probe_skip("no user namespace: %s: %s", path, strerror(errno));
	close(fd);
}

/* A mount namespace of our own, by privilege or in a user namespace. Single-threaded callers. */
static inline void sandbox_enter(void)
{
	unsigned user = geteuid(), group = getegid();
	char map[64];

	if (unshare(CLONE_NEWNS) != 0) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
			probe_skip("no mount namespace: %s", strerror(errno));
		/* Who is nobody there can make no file. */
		snprintf(map, sizeof(map), "%u %u 1", user, user);
		sandbox_write("/proc/self/uid_map", map);
		sandbox_write("/proc/self/setgroups", "deny");
		snprintf(map, sizeof(map), "%u %u 1", group, group);
		sandbox_write("/proc/self/gid_map", map);
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		probe_skip("mounts cannot be made private: %s", strerror(errno));
}

static inline void sandbox_copy(const char *from, const char *root)
{
	char to[8192], buf[65536];
	ssize_t n;

	snprintf(to, sizeof(to), "%s%s", root, from);
	for (char *p = strchr(to + strlen(root) + 1, '/'); p != NULL; p = strchr(p + 1, '/')) {
		*p = 0;
		mkdir(to, 0755);
		*p = '/';
	}
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755);
	while (in >= 0 && out >= 0 && (n = read(in, buf, sizeof(buf))) > 0)
		probe_require(write(out, buf, (size_t)n) == n, "cannot copy %s", from);
	probe_require(out >= 0, "cannot write %s", to);
	close(in);
	close(out);
}

static inline int sandbox_copy_interpreter(struct dl_phdr_info *info, size_t size, void *root)
{
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_INTERP)
			sandbox_copy((const char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
				     (const char *)root);
	return 0;
}

/* Copies everything this process has mapped (program, loader, libraries) below root. */
static inline void sandbox_copy_self(char *root)
{
	static char maps[1 << 16];
	char last[4096] = "";

	probe_require(probe_read("/proc/self/maps", maps, sizeof(maps)) > 0, "no /proc/self/maps");
	for (char *line = strtok(maps, "\n"); line != NULL; line = strtok(NULL, "\n")) {
		char *path = strchr(line, '/');
		if (path == NULL || strcmp(path, last) == 0)
			continue;
		snprintf(last, sizeof(last), "%s", path);
		sandbox_copy(path, root);
	}
	dl_iterate_phdr(sandbox_copy_interpreter, root);
}

#endif
