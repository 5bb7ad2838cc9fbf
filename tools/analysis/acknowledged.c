/* SPDX-License-Identifier: MIT */
#include "tools/analysis/acknowledged.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cmd.h"

bool tm_acknowledged_path(char *buf, size_t size)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	int n = -1;

	if (config && config[0] == '/')
		n = snprintf(buf, size, "%s/tiermalloc/acknowledged", config);
	else if (home && home[0] == '/')
		n = snprintf(buf, size, "%s/.config/tiermalloc/acknowledged", home);
	return n > 0 && (size_t)n < size;
}

static void add(struct tm_acknowledged *a, const char *id, uint64_t cap)
{
	struct tm_acknowledged_site *wider = realloc(a->site, (a->count + 1) * sizeof(*a->site));

	if (wider == NULL)
		return;
	a->site = wider;
	snprintf(a->site[a->count].id, sizeof(a->site[a->count].id), "%s", id);
	a->site[a->count++].cap_bytes = cap;
}

void tm_acknowledged_read(struct tm_acknowledged *a)
{
	char path[PATH_MAX], line[256], id[40];
	uint64_t cap;

	memset(a, 0, sizeof(*a));
	FILE *f = tm_acknowledged_path(path, sizeof(path)) ? fopen(path, "re") : NULL;
	if (f == NULL)
		return;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%39s %" SCNu64, id, &cap) == 2 && id[0] != '#')
			add(a, id, cap);
	}
	fclose(f);
}

void tm_acknowledged_free(struct tm_acknowledged *a)
{
	free(a->site);
	memset(a, 0, sizeof(*a));
}

static bool same(const char *a, const char *b)
{
	size_t x = strlen(a), y = strlen(b);

	return strncmp(a, b, x < y ? x : y) == 0;
}

bool tm_acknowledged_find(const struct tm_acknowledged *a, const char *id, uint64_t *ret_cap_bytes)
{
	for (size_t i = 0; i < a->count; i++) {
		if (same(a->site[i].id, id)) {
			*ret_cap_bytes = a->site[i].cap_bytes;
			return true;
		}
	}
	return false;
}

/* Creates the missing folders above the file. */
static void make_folders(const char *path)
{
	char part[PATH_MAX];

	for (const char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(p - path), path);
		mkdir(part, 0700);
	}
}

int tm_acknowledged_set(const char *id, uint64_t cap_bytes)
{
	struct tm_acknowledged a;
	char path[PATH_MAX], fresh[PATH_MAX + 8];
	bool ok;

	if (!tm_acknowledged_path(path, sizeof(path))) {
		tm_say("ack: no home folder, set HOME or XDG_CONFIG_HOME");
		return -1;
	}
	make_folders(path);
	tm_acknowledged_read(&a);
	snprintf(fresh, sizeof(fresh), "%s.new", path);
	FILE *f = fopen(fresh, "we");
	ok = f != NULL;
	for (size_t i = 0; ok && i < a.count; i++) {
		if (!same(a.site[i].id, id))
			ok = fprintf(f, "%s %" PRIu64 "\n", a.site[i].id, a.site[i].cap_bytes) > 0;
	}
	if (ok && cap_bytes)
		ok = fprintf(f, "%s %" PRIu64 "\n", id, cap_bytes) > 0;
	if (f && fclose(f) != 0)
		ok = false;
	if (ok && rename(fresh, path) != 0)
		ok = false;
	if (!ok)
		tm_say("ack: cannot write '%s': %s", path, strerror(errno));
	tm_acknowledged_free(&a);
	return ok ? 0 : -1;
}
