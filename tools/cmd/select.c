/* SPDX-License-Identifier: MIT */
#include "tools/cmd/select.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/base/parse.h"
#include "tools/cmd.h"
#include "tools/help.h"
#include "tools/ledger/ledger.h"
#include "tools/ledger/ledger_list.h"

#define TOP_DEFAULT 20u
#define TOP_FRAG 8u

void tm_select_init(struct tm_select *s, enum tm_doc_kind kind)
{
	*s = (struct tm_select){
		.out = stdout,
		.text = {.top = kind == TM_DOC_FRAG ? TOP_FRAG : TOP_DEFAULT},
		.analysis = {.kind = kind, .symbol_sites = TOP_DEFAULT},
	};
}

static int take_time(const char *value, uint64_t *ret_ms)
{
	if (tm_parse_time(tm_str_of(value), ret_ms) != 0)
		return tm_say_usage("bad time '%s' of --since, use a number with ms, s, m or h",
				    value);
	return 0;
}

static int take_valued(struct tm_select *s, const char *name, const char *value)
{
	if (strcmp(name, "--top") == 0)
		return tm_take_count(s->verb, name, value, &s->text.top);
	if (strcmp(name, "--sort") == 0) {
		s->text.sort = value;
		if (!tm_text_is_sort_key(value))
			return tm_say_usage(
				"unknown key '%s' of --sort, use live, objects, alloc, bytes, pinned, growth",
				value);
		return 0;
	}
	if (strcmp(name, "--since") == 0)
		return take_time(value, &s->since_ms);
	if (strcmp(name, "--fail-on") == 0)
		return tm_fail_on_parse(&s->fail_on, value);
	if (strcmp(name, "--filter") == 0)
		s->text.filter = value;
	else if (strcmp(name, "--site") == 0)
		s->text.site = value;
	else if (strcmp(name, "--html") == 0)
		s->html = value;
	else if (strcmp(name, "--from-json") == 0)
		s->from_json = value;
	else if (strcmp(name, "--debug-dir") == 0)
		s->analysis.debug_dir = value;
	else if (access(value, R_OK) != 0)
		return tm_say_usage("'%s' of --suppressions cannot be read: %s", value,
				    strerror(errno));
	else
		s->analysis.suppressions = value;
	return 0;
}

static bool has_value(const char *name)
{
	static const char *const names[] = {
		"--top",  "--sort", "--since",     "--fail-on",   "--filter",
		"--site", "--html", "--from-json", "--debug-dir", "--suppressions"};

	for (size_t i = 0; i < TM_ARRAY_LEN(names); i++) {
		if (strcmp(name, names[i]) == 0)
			return true;
	}
	return false;
}

int tm_select_option(struct tm_select *s, const char *verb, int argc, char **argv, int *i)
{
	char name[32];
	size_t len = strcspn(argv[*i], "=");
	const char *value = NULL;

	if (strcmp(argv[*i], "--json") == 0) {
		s->json = true;
		return 0;
	}
	if (strcmp(argv[*i], "--who-holds") == 0) {
		s->who_holds = true;
		return 0;
	}
	if (strcmp(argv[*i], "--no-scan") == 0) {
		s->no_scan = true;
		return 0;
	}
	snprintf(name, sizeof(name), "%.*s", (int)len, argv[*i]);
	if (!has_value(name))
		return -1;
	if (argv[*i][len] == '=')
		value = argv[*i] + len + 1;
	else if (*i + 1 < argc)
		value = argv[++*i];
	if (value == NULL || *value == '\0')
		return tm_say_no_value(verb, name);
	return take_valued(s, name, value);
}

int tm_select_parse(struct tm_select *s, int argc, char **argv)
{
	bool plain = false;

	s->verb = argv[0];
	for (int i = 1; i < argc; i++) {
		if (!plain && strcmp(argv[i], "--") == 0) {
			plain = true;
			continue;
		}
		if (!plain && argv[i][0] == '-' && argv[i][1] != '\0') {
			int status = tm_help_has_option(argv[0], argv[i])
					     ? tm_select_option(s, argv[0], argc, argv, &i)
					     : -1;

			if (status < 0)
				return tm_say_unknown(argv[0], argv[i]);
			if (status)
				return status;
		} else if (s->target) {
			return tm_say_usage("%s: more than one ledger: '%s'", argv[0], argv[i]);
		} else {
			s->target = argv[i];
		}
	}
	if (s->target == NULL && s->from_json == NULL)
		return tm_say_needs(argv[0], "a process, a ledger or a folder");
	if (s->who_holds && s->text.site == NULL)
		return tm_say_usage("%s: '--who-holds' needs --site", argv[0]);
	/* Anything printed in full or passed on needs names. */
	if (s->json || s->html || s->text.filter || s->text.site)
		s->analysis.symbol_sites = TM_ANALYSIS_ALL;
	else if (s->text.top > s->analysis.symbol_sites)
		s->analysis.symbol_sites = s->text.top;
	return 0;
}

/* --- which ledger ----------------------------------------------------------------------------- */

void tm_select_folder(char *buf, size_t size)
{
	const char *dir = getenv("TIERMALLOC_DIR");

	if (dir && *dir)
		snprintf(buf, size, "%s", dir);
	else
		snprintf(buf, size, "/dev/shm/tiermalloc-%u", (unsigned)geteuid());
}

/*
 * Finds the ledger that a process has mapped. In a container its path is one inside the container.
 */
static bool of_process(const char *pid, char *buf, size_t size)
{
	char path[64], line[PATH_MAX + 200];
	bool found = false;

	snprintf(path, sizeof(path), "/proc/%s/maps", pid);
	FILE *f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f)) {
		char *file = strchr(line, '/'), *end = strstr(line, ".tm\n");

		if (file == NULL || end == NULL)
			continue;
		end[3] = '\0';
		snprintf(buf, size, "%s", file);
		if (access(buf, R_OK) != 0)
			snprintf(buf, size, "/proc/%s/root%s", pid, file);
		found = true;
	}
	if (f)
		fclose(f);
	return found;
}

/*
 * Finds what an ended process, or one that keeps no ledger, left in the usual folder. Process ids
 * are reused.
 */
static bool of_gone(const char *pid, char *buf, size_t size)
{
	char folder[PATH_MAX], path[PATH_MAX];
	struct timespec last = {0};
	size_t len = strlen(pid);
	bool found = false;
	struct stat st;

	tm_select_folder(folder, sizeof(folder));
	DIR *dir = opendir(folder);
	for (struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
		if (strncmp(e->d_name, pid, len) != 0 || e->d_name[len] != '-' ||
		    strlen(e->d_name) < 4 || strcmp(e->d_name + strlen(e->d_name) - 3, ".tm") != 0)
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", folder, e->d_name) >= (int)sizeof(path) ||
		    lstat(path, &st) != 0 || !S_ISREG(st.st_mode))
			continue;
		if (found &&
		    (st.st_mtim.tv_sec < last.tv_sec ||
		     (st.st_mtim.tv_sec == last.tv_sec && st.st_mtim.tv_nsec < last.tv_nsec)))
			continue;
		last = st.st_mtim;
		snprintf(buf, size, "%s", path);
		found = true;
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Whether a running process has that number but is not the one that left the ledger. */
static bool is_another(const char *pid, const char *path)
{
	const char *start = strrchr(path, '-');
	uint64_t now = tm_ledger_start_time((uint32_t)strtoul(pid, NULL, 10));

	return start && now != 0 && strtoull(start + 1, NULL, 10) != now;
}

/* The largest ledger of a folder, on disk: that of the process that did the work. */
static int of_folder(const char *folder, char *buf, size_t size)
{
	DIR *dir = opendir(folder);
	blkcnt_t most = -1;
	size_t count = 0, foreign = 0;
	uint32_t version;

	for (struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
		const char *end = strrchr(e->d_name, '.');
		char path[PATH_MAX];
		struct stat st;

		if (end == NULL || strcmp(end, ".tm") != 0 ||
		    snprintf(path, sizeof(path), "%s/%s", folder, e->d_name) >= (int)sizeof(path) ||
		    lstat(path, &st) != 0 || !S_ISREG(st.st_mode))
			continue;
		/* Files of an older release, or that are no ledgers, are skipped. */
		if (!tm_ledger_is_readable(path, &version)) {
			foreign++;
			continue;
		}
		count++;
		if (st.st_blocks > most) {
			most = st.st_blocks;
			snprintf(buf, size, "%s", path);
		}
	}
	if (dir)
		closedir(dir);
	if (count == 0 && foreign)
		return tm_say_usage(
			"no ledger in '%s' that this command reads, but %zu other%s: see tiermalloc ls",
			folder, foreign, foreign == 1 ? "" : "s");
	if (count == 0)
		return tm_say_usage(
			"no ledger in '%s': start the program with 'tiermalloc run --dir %s', or see 'tiermalloc doctor'",
			folder, folder);
	if (count > 1)
		tm_say("'%s' has %zu ledgers, this is '%s'; see tiermalloc ls", folder, count, buf);
	return 0;
}

int tm_select_ledger(const char *target, char *buf, size_t size)
{
	struct stat st;

	if (target[strspn(target, "0123456789")] == '\0' && access(target, F_OK) != 0) {
		if (of_process(target, buf, size))
			return 0;
		if (of_gone(target, buf, size))
			return is_another(target, buf)
				       ? tm_say_usage(
						 "process %s is now another program, without a ledger; the earlier one's is '%s'",
						 target, buf)
				       : 0;
		return tm_say_usage(
			"process '%s' has no ledger here: below 4 MiB none is kept unless 'run --dir' or TIERMALLOC_DIR asks for one, see tiermalloc ls and doctor",
			target);
	}
	if (stat(target, &st) == 0 && S_ISDIR(st.st_mode))
		return of_folder(target, buf, size);
	snprintf(buf, size, "%s", target);
	return 0;
}

int tm_select_each(const char *what, bool tells, int (*one)(void *arg, const char *path), void *arg)
{
	struct tm_ledger_list list;
	struct stat st;
	int status;

	if (stat(what, &st) != 0 || !S_ISDIR(st.st_mode))
		return one(arg, what);
	status = tm_ledger_list_read(&list, what);
	if (status != 0)
		return tm_say_usage("cannot read the folder '%s': %s", what, strerror(-status));
	if (list.count == 0)
		status = tm_say_usage("no ledger in '%s'", what);
	for (size_t i = 0; i < list.count && status == 0; i++) {
		uint32_t version;

		if (tm_ledger_is_readable(list.at[i].path, &version))
			status = one(arg, list.at[i].path);
		else if (tells)
			tm_say("'%s' is left out: it is %s", list.at[i].path,
			       version ? "a ledger of another version" : "no ledger");
	}
	tm_ledger_list_clear(&list);
	return status;
}
