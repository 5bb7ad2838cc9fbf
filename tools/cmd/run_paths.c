/* SPDX-License-Identifier: MIT */
/* run_paths: see run_paths.h. */
#include "tools/cmd/run_paths.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policies/rules.h"
#include "shim/base/tunables.h"
#include "tools/cmd.h"

/* Joins a folder and a path; in a pattern a percent sign of the folder's name is doubled. */
static void join(char *buf, const char *folder, bool is_pattern, const char *path)
{
	for (; *folder; folder++) {
		if (is_pattern && *folder == '%')
			*buf++ = '%';
		*buf++ = *folder;
	}
	*buf++ = '/';
	strcpy(buf, path);
}

static int from_folder(const char *folder, const char *name, const char *path, bool is_pattern)
{
	char *buf;
	int err;

	if (path == NULL || *path == '\0' || *path == '/')
		return 0;
	buf = malloc(2 * strlen(folder) + strlen(path) + 2);
	if (buf)
		join(buf, folder, is_pattern, path);
	err = buf ? setenv(name, buf, 1) : -1;
	free(buf);
	return err;
}

/* A separate variable overrides TIERMALLOC_CONF, so the latter may stay unchanged. */
int tm_run_paths_from_here(void)
{
	struct tm_tunables_input input = {.env = environ};
	struct tm_options options;
	char folder[PATH_MAX];
	int err = 0;

	if (getcwd(folder, sizeof(folder)) == NULL)
		return 0;
	input.store_bytes = tm_tunables_store_bytes(environ);
	input.store = malloc(input.store_bytes + 1);
	if (input.store) {
		tm_tunables_read(&options, &input);
		if (options.rules && !tm_rules_is_inline(tm_str_of(options.rules)))
			err |= from_folder(folder, "TIERMALLOC_RULES", options.rules, false);
		err |= from_folder(folder, "TIERMALLOC_PROFILE", options.profile, false);
		err |= from_folder(folder, "TIERMALLOC_DIR", options.dir, false);
		err |= from_folder(folder, "TIERMALLOC_TRACE", options.trace, true);
		err |= from_folder(folder, "TIERMALLOC_REPORT_FILE", options.report_file, true);
	}
	if (input.store == NULL || err)
		tm_say("out of memory for the environment");
	free(input.store);
	return input.store && err == 0 ? 0 : -1;
}
