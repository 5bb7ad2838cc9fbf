/* SPDX-License-Identifier: MIT */
/*
 * run: starts a program with the library, checks that it was really loaded, forwards signals and
 * the exit status, and prints the library's report.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policies/rules.h"
#include "shim/base/tunables.h"
#include "tools/cmd.h"
#include "tools/cmd/program.h"
#include "tools/cmd/run_account.h"
#include "tools/cmd/run_child.h"
#include "tools/cmd/run_paths.h"
#include "tools/export/export_file.h"
#include "tools/library.h"

struct options {
	bool python;
	bool observe;
	bool wants_account;
	struct tm_run_account account;
	const char *dir;
	const char *rules;
	const char *profile;
	char **command;
};

/* Refuses an option whose variable is not built in. */
static int check_built(const char *option, enum tm_tunable which)
{
	if (tm_tunables_rows[which].built)
		return 0;
	return tm_say_usage("run: '%s' has no effect, this build lacks %s", option,
			    tm_tunables_part(&tm_tunables_rows[which]));
}

static int check_readable(const char *option, const char *path)
{
	if (access(path, R_OK) == 0)
		return 0;
	return tm_say_usage("run: '%s' of %s cannot be read: %s", path, option, strerror(errno));
}

static int take_report(struct options *options, const char *kind)
{
	static const struct {
		const char *name;
		enum tm_doc_kind kind;
	} kinds[] = {{"leak", TM_DOC_LEAK}, {"frag", TM_DOC_FRAG}, {"full", TM_DOC_FULL}};

	for (size_t i = 0; i < TM_ARRAY_LEN(kinds); i++) {
		if (strcmp(kind, kinds[i].name) != 0)
			continue;
		options->account.kind = kinds[i].kind;
		options->wants_account = true;
		return 0;
	}
	return tm_say_usage("run: bad kind '%s' of --report, use leak, frag, full", kind);
}

/* Handles an option with a value; returns 0 or the exit status. */
static int take_value(struct options *options, const char *option, const char *value)
{
	int status;

	if (strcmp(option, "--report") == 0)
		return take_report(options, value);
	if (strcmp(option, "--dir") == 0) {
		options->dir = value;
		return check_built(option, TM_TUNABLE_TIERMALLOC_DIR);
	}
	if (strcmp(option, "--rules") == 0) {
		options->rules = value;
		status = check_built(option, TM_TUNABLE_TIERMALLOC_RULES);
		if (status || tm_rules_is_inline(tm_str_of(value)))
			return status;
		return check_readable(option, value);
	}
	if (strcmp(option, "--profile") == 0) {
		options->profile = value;
		status = check_built(option, TM_TUNABLE_TIERMALLOC_PROFILE);
		return status ? status : check_readable(option, value);
	}
	options->wants_account = true;
	if (strcmp(option, "--fail-on") == 0)
		return tm_fail_on_parse(&options->account.fail_on, value);
	if (strcmp(option, "--json") == 0)
		options->account.json = value;
	else
		options->account.html = value;
	return 0;
}

static bool has_value(const char *option)
{
	static const char *const names[] = {
		"--report", "--dir", "--rules", "--profile", "--json", "--html", "--fail-on",
	};

	for (size_t i = 0; i < TM_ARRAY_LEN(names); i++) {
		if (strcmp(option, names[i]) == 0)
			return true;
	}
	return false;
}

/*
 * Handles "--name=value" and "--name value". Moves "*i" to the last argument used; returns 0 or the
 * exit status.
 */
static int take_option(struct options *options, char **argv, int argc, int *i)
{
	char name[32];
	size_t len = strcspn(argv[*i], "=");
	const char *value = NULL;

	if (strcmp(argv[*i], "--python") == 0) {
		options->python = true;
		return 0;
	}
	if (strcmp(argv[*i], "--observe") == 0) {
		options->observe = true;
		return 0;
	}
	snprintf(name, sizeof(name), "%.*s", (int)len, argv[*i]);
	if (!has_value(name))
		return tm_say_unknown("run", argv[*i]);
	if (argv[*i][len] == '=')
		value = argv[*i] + len + 1;
	else if (*i + 1 < argc)
		value = argv[++*i];
	if (value == NULL || *value == '\0')
		return tm_say_no_value("run", name);
	return take_value(options, name, value);
}

static int parse(struct options *ret_options, int argc, char **argv)
{
	int i;

	*ret_options = (struct options){.python = false};
	for (i = 1; i < argc && argv[i][0] == '-'; i++) {
		int status;

		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		status = take_option(ret_options, argv, argc, &i);
		if (status)
			return status;
	}
	if (i >= argc)
		return tm_say_needs("run", "a command");
	ret_options->command = argv + i;
	return 0;
}

static int set(const char *name, const char *value)
{
	if (setenv(name, value, 1) == 0)
		return 0;
	tm_say("run: out of memory for the environment");
	return TM_EXIT_TROUBLE;
}

/*
 * Changes this process's environment, which the command inherits; nothing here reads it afterwards.
 */
static int prepare_environment(const struct options *options, const char *library)
{
	const char *old = getenv("LD_PRELOAD");
	char *preload = tm_library_preload(library, old);
	int status = 0;

	if (old && tm_library_rival(old))
		tm_say("run: LD_PRELOAD holds another allocator ('%s'): it stays, and gets nothing to do",
		       old);
	status |= preload ? set("LD_PRELOAD", preload) : TM_EXIT_TROUBLE;
	free(preload);
	if (options->python) {
		status |= set("PYTHONMALLOC", "malloc");
		status |= set("TIERMALLOC_PYTHON", "on");
	}
	if (options->observe)
		status |= set("TIERMALLOC", "observe");
	if (options->dir)
		status |= set("TIERMALLOC_DIR", options->dir);
	if (options->rules)
		status |= set("TIERMALLOC_RULES", options->rules);
	if (options->profile)
		status |= set("TIERMALLOC_PROFILE", options->profile);
	if (status == 0)
		status = tm_run_paths_from_here();
	return status ? TM_EXIT_TROUBLE : 0;
}

static int find_library(char *buf, size_t size)
{
	const char *why;
	int err = tm_library_find(buf, size);

	if (err) {
		tm_say("run: " TM_LIBRARY_NAME " is not beside this command (%s), install it again",
		       strerror(-err));
		return TM_EXIT_TROUBLE;
	}
	why = tm_library_obstacle(buf);
	if (why) {
		tm_say("run: '%s' cannot be preloaded: %s", buf, why);
		return TM_EXIT_TROUBLE;
	}
	return 0;
}

/* Prints what is known before the start. If the command is not found, execvp reports that. */
static bool warn_before(const struct options *options)
{
	struct tm_program program;
	const char *why;

	if (tm_program_look(&program, options->command[0]) != 0)
		return false;
	why = tm_program_why(&program, TM_REACH_NONE);
	if (why == NULL)
		why = tm_program_why(&program, TM_REACH_PASSIVE);
	if (why)
		tm_say("run: the library has no effect: %s", why);
	return why != NULL;
}

int tm_cmd_run(int argc, char **argv)
{
	struct options options;
	struct tm_run_end end;
	char library[PATH_MAX];
	bool warned;
	int status = parse(&options, argc, argv);

	if (status == 0 && options.account.json)
		status = tm_export_check("run", options.account.json, NULL);
	if (status == 0 && options.account.html)
		status = tm_export_check("run", options.account.html, NULL);
	if (status == 0)
		status = find_library(library, sizeof(library));
	if (status == 0)
		status = prepare_environment(&options, library);
	if (status == 0 && options.wants_account)
		status = tm_run_account_open(&options.account, NULL);
	if (status)
		return status;
	warned = warn_before(&options);
	status = tm_run_child(&end, options.command, library);
	if (status == 0 && !end.seen && end.looked_long && !warned)
		tm_say("run: the library is not in '%s' (process %d), see 'tiermalloc doctor %s'",
		       options.command[0], (int)end.pid, options.command[0]);
	int found = status == 0 ? tm_run_account_print(&options.account, &end) : 0;
	tm_run_account_close(&options.account);
	if (status == 0)
		status = tm_run_child_status(&end);
	return status ? status : found;
}
