/* SPDX-License-Identifier: MIT */
/*
 * trace: runs a command and records every request that it makes, or takes a recording that
 * TIERMALLOC_TRACE made; both become a trace for 'tiermalloc replay'.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cmd.h"
#include "tools/cmd/run_child.h"
#include "tools/cmd/run_paths.h"
#include "tools/cmd/trace_convert.h"
#include "tools/export/export_file.h"
#include "tools/library.h"

static int convert(const char *recording, const char *out)
{
	struct tm_trace_sums sums;

	int status = tm_trace_convert(recording, out, &sums);

	if (status)
		return status;
	tm_say("trace: %llu events, %llu objects in '%s'", (unsigned long long)sums.events,
	       (unsigned long long)sums.objects, out);
	return TM_EXIT_CLEAN;
}

/*
 * Converts the command's own recording to the trace; recordings of programs that it started are
 * dropped.
 */
static int finish(const char *folder, const struct tm_run_end *end, const char *out)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%d", folder, (int)end->pid);
	if (access(path, R_OK) != 0) {
		tm_say("trace: nothing was recorded, see 'tiermalloc doctor'");
		return TM_EXIT_TROUBLE;
	}
	return convert(path, out) == 0 ? TM_EXIT_CLEAN : TM_EXIT_TROUBLE;
}

static void remove_folder(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(dir), entry->d_name, 0);
	}
	if (dir)
		closedir(dir);
	if (rmdir(folder) != 0)
		tm_say("trace: '%s' cannot be removed: %s", folder, strerror(errno));
}

/* Changes this process's environment, which the command inherits. */
static int prepare(const char *library, const char *folder)
{
	const char *why = tm_library_obstacle(library);
	char *preload = why ? NULL : tm_library_preload(library, getenv("LD_PRELOAD"));
	char pattern[128];
	int err = -1;

	if (why)
		tm_say("trace: '%s' cannot be preloaded: %s", library, why);
	snprintf(pattern, sizeof(pattern), "%s/%%p", folder);
	if (preload)
		err = setenv("LD_PRELOAD", preload, 1) | setenv("TIERMALLOC_TRACE", pattern, 1);
	free(preload);
	return err ? err : tm_run_paths_from_here();
}

static int record(char **command, const char *out)
{
	char folder[] = "/tmp/tiermalloc-trace.XXXXXX";
	char library[PATH_MAX];
	struct tm_run_end end = {0};
	int status;

	if (tm_library_find(library, sizeof(library)) != 0) {
		tm_say("trace: " TM_LIBRARY_NAME " is not beside this command, install it again");
		return TM_EXIT_TROUBLE;
	}
	if (mkdtemp(folder) == NULL) {
		tm_say("trace: no folder can be made in /tmp: %s", strerror(errno));
		return TM_EXIT_TROUBLE;
	}
	status = prepare(library, folder) == 0 ? tm_run_child(&end, command, library)
					       : TM_EXIT_TROUBLE;
	int trouble = status == 0 ? finish(folder, &end, out) : 0;
	remove_folder(folder);
	if (status == 0)
		status = tm_run_child_status(&end);
	return status ? status : trouble;
}

int tm_cmd_trace(int argc, char **argv)
{
	const char *out = NULL, *recording = NULL;
	int i = 1, status;

	for (; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0; i++) {
		const char **value = strcmp(argv[i], "-o") == 0          ? &out
				     : strcmp(argv[i], "--convert") == 0 ? &recording
									 : NULL;

		if (value == NULL)
			return tm_say_unknown("trace", argv[i]);
		if (i + 1 == argc)
			return tm_say_no_value("trace", argv[i]);
		*value = argv[++i];
	}
	if (i < argc && strcmp(argv[i], "--") == 0)
		i++;
	if (out == NULL || (recording == NULL) == (i >= argc))
		return tm_say_needs("trace", "'-o TRACE', and a command or '--convert RECORDING'");
	status = tm_export_check("trace", out, recording);
	if (status)
		return status;
	return recording ? convert(recording, out) : record(argv + i, out);
}
