/* SPDX-License-Identifier: MIT */
#include "tools/ledger/ledger_list.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void tm_ledger_folder(char *buf, size_t size)
{
	const char *folder = getenv("TIERMALLOC_DIR");

	if (folder && *folder)
		snprintf(buf, size, "%s", folder);
	else
		snprintf(buf, size, "/dev/shm/tiermalloc-%u", (unsigned)geteuid());
}

/* "PID-STARTTIME.tm" */
static bool is_ledger_name(const char *name, uint64_t *ret_pid)
{
	char *end;

	if (*name < '0' || *name > '9')
		return false;
	errno = 0;
	*ret_pid = strtoull(name, &end, 10);
	if (errno != 0 || *end != '-')
		return false;
	end += 1 + strspn(end + 1, "0123456789");
	return end[-1] != '-' && strcmp(end, ".tm") == 0;
}

static int add(struct tm_ledger_list *l, const char *folder, const char *name, uint64_t pid)
{
	struct tm_ledger_entry e = {.pid = pid};
	struct tm_ledger_entry *wider;
	struct stat st;

	if (asprintf(&e.path, "%s/%s", folder, name) < 0)
		return -ENOMEM;
	e.name = strrchr(e.path, '/') + 1;
	if (lstat(e.path, &st) != 0 || !S_ISREG(st.st_mode)) {
		free(e.path);
		return 0; /* removed meanwhile, or not ours */
	}
	e.bytes = (uint64_t)st.st_blocks * 512;
	e.changed_ns =
		(uint64_t)st.st_mtim.tv_sec * UINT64_C(1000000000) + (uint64_t)st.st_mtim.tv_nsec;
	wider = reallocarray(l->at, l->count + 1, sizeof(*wider));
	if (wider == NULL) {
		free(e.path);
		return -ENOMEM;
	}
	l->at = wider;
	l->at[l->count++] = e;
	return 0;
}

static int by_pid(const void *a, const void *b)
{
	const struct tm_ledger_entry *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return strcmp(x->name, y->name);
}

int tm_ledger_list_read(struct tm_ledger_list *l, const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	uint64_t pid;
	int rc = 0;

	memset(l, 0, sizeof(*l));
	if (dir == NULL)
		return errno == ENOENT ? 0 : -errno;
	while (rc == 0 && (entry = readdir(dir))) {
		if (is_ledger_name(entry->d_name, &pid))
			rc = add(l, folder, entry->d_name, pid);
	}
	closedir(dir);
	if (rc != 0)
		tm_ledger_list_clear(l);
	else if (l->count)
		qsort(l->at, l->count, sizeof(*l->at), by_pid);
	return rc;
}

void tm_ledger_list_clear(struct tm_ledger_list *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->at[i].path);
	free(l->at);
	memset(l, 0, sizeof(*l));
}
